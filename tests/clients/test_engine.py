"""Tests of the engine of /play, under Node.js: it gives the same answers as the service's engine."""

import json
import random
import shutil
import subprocess
from datetime import date, timedelta
from pathlib import Path

import pytest

from solisync.klondike import Status, check_literally, recorded
from solisync.klondike.daily import daily_seed
from solisync.klondike.deal import deal
from solisync.klondike.game import Game
from solisync.klondike.rules import COLUMNS, FACE_DOWN, FOUNDATIONS, PILE_NAMES, STOCK, STOCK_CLICK, WASTE, Move, play
from solisync.klondike.scoring import MAY_19
from tests.clients.engine import ADVICE, DECKS, FOLLOW, HINTED, UPLOAD, position_of
from tests.harness.constants import PATIENCE, ROOT
from tests.klondike.vectors import board_text, fnv, lines, read, wins
from tests.pages.player import STUCK

pytestmark = pytest.mark.needs("node")
RUNNER = Path(__file__).with_name("engine.mjs")
RULESET = MAY_19.name
EDGES = (0, 2**53 - 1, 2**53, 2**53 + 1, 2**64 - 1)
MUTATIONS = {
    "points": ("const WASTE_TO_COLUMN = 5;", "const WASTE_TO_COLUMN = 10;"),
    "rotation": ("[c, d, b, 7]", "[c, d, b, 9]"),
    "fan": ("s.slice(-draw) : w;", "s.slice(-draw).reverse() : w;"),
}


@pytest.fixture
def folder(tmp_path):
    """The modules of the pages for players, as the service has them at one address."""
    for source in (ROOT / "clients" / "javascript" / "src", ROOT / "solisync" / "static" / "players" / "web"):
        for script in source.glob("*.js"):
            shutil.copy(script, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    return tmp_path


@pytest.fixture
def answered(folder):
    """Return the result of a JavaScript function for an argument."""

    def answered(function, argument, *, workers=True):
        asked = json.dumps({"function": function, "argument": argument, "workers": workers})
        command = ["node", RUNNER, folder]
        done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return answered


def decks_differ(answered):
    vectors = lines("deals")
    found = answered(DECKS, [str(vector["seed"]) for vector in vectors])
    return [vector["seed"] for vector, deck in zip(vectors, found, strict=True) if deck != vector["deck"]]


def traces_differ(answered):
    """Return the desktop game's traces whose result differs in the page, which plays only mode Classic."""
    differ = []
    for number, trace in enumerate(lines(f"traces_{RULESET}")):
        expected = [
            (accepted, 0 if trace["mode"] == "Zen" else score, board)
            for tried, accepted, score, board in zip(
                trace["inputs"], trace["accepted"], trace["scores"], trace["boards"], strict=True
            )
            if trace["mode"] != "Challenge" or tried != "Undo"  # mode Challenge refuses undos
        ]
        inputs = [tried for tried in trace["inputs"] if trace["mode"] != "Challenge" or tried != "Undo"]
        asked = {"seed": str(trace["seed"]), "draw": 3 if trace["draw_mode"] == "DrawThree" else 1, "inputs": inputs}
        (played,) = answered(FOLLOW, [asked])
        found = [
            (accepted, 0 if trace["mode"] == "Zen" else score, fnv(text)) for accepted, score, text in played["tried"]
        ]
        end = (played["won"], played["moves"], played["turns"], len(played["undos"]))
        if found != expected or end != (trace["won"], trace["moves"], trace["recycles"], trace["undos"]):
            differ.append(number)
    return differ


def test_page_engine_reproduces_the_vectors(answered):
    """The engine reproduces each deck, and every attempt, score, board and end of each trace."""
    assert decks_differ(answered) == []
    assert traces_differ(answered) == []


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_vectors_detect_a_wrong_engine(answered, folder, mutation):
    """Each of three small mistakes makes the vectors differ."""
    right, wrong = MUTATIONS[mutation]
    script = folder / "klondike.js"
    text = script.read_text("utf-8")
    assert text.count(right) == 1
    script.write_text(text.replace(right, wrong), "utf-8")
    assert decks_differ(answered) or traces_differ(answered)


def random_move(chance):
    """Return a random move, which is nearly always illegal."""
    piles = (*FOUNDATIONS, *COLUMNS, STOCK, WASTE)
    return Move(chance.choice(piles), chance.choice(piles), chance.randint(0, 4))


def legal_move(chance, board, draw):
    """Return a legal move, or a click on the stock if it is the only one."""
    runs = [
        (pile, size)
        for pile in (*FOUNDATIONS, *COLUMNS, WASTE)
        for size in range(1, 1 + (sum(card < FACE_DOWN for card in board[pile]) if pile in COLUMNS else 1))
    ]
    moves = [STOCK_CLICK, *(Move(pile, to, size) for pile, size in runs for to in (*FOUNDATIONS, *COLUMNS))]
    chance.shuffle(moves)
    return next((move for move in moves if play(board, move, draw, lenient=False)), STOCK_CLICK)


def random_game(chance, seed, attempts):
    """Return random attempts at moves in a game, and the answer of the service's engine to each."""
    draw = chance.choice((1, 3))
    game = Game(deal(seed), MAY_19, draw=draw)
    inputs, answers = [], []
    for _ in range(attempts):
        roll = chance.random()
        if roll < 0.1:
            inputs.append("Undo")
            accepted = game.undo()
        else:
            move = legal_move(chance, game.board, draw) if roll < 0.5 else random_move(chance)
            inputs.append(recorded(move))
            accepted = game.play(move) is not None
        answers.append([accepted, game.score, board_text(game.board)])
    return {"seed": str(seed), "draw": draw, "inputs": inputs}, answers


def test_page_engine_agrees_on_random_games(answered):
    """The 200 games have seeds of all sizes and 300 attempts each, with undos. Most attempts are refused."""
    chance = random.Random(28)
    seeds = [*EDGES, *(chance.getrandbits(chance.choice((10, 53, 64))) for _ in range(195))]
    refused = 0
    for begin in range(0, len(seeds), 20):
        games = [random_game(chance, seed, 300) for seed in seeds[begin : begin + 20]]
        played = answered(FOLLOW, [asked for asked, _ in games])
        for found, (asked, answers) in zip(played, games, strict=True):
            assert found["tried"] == answers, asked["seed"]
            refused += sum(not accepted for accepted, _, _ in answers)
    assert refused > 20_000


@pytest.mark.parametrize("undo", [False, True])
def test_uploads_of_the_page_are_verified_literally(answered, undo):
    """The verdict has the same score, and the undos at their places, with and without a reload before the upload."""
    for win in wins(RULESET, undo=undo):
        replay, inputs = win["replay"], win["truth"]["inputs"]
        if replay["mode"] in ("Zen", "Challenge"):
            continue
        draw = 3 if replay["draw_mode"] == "DrawThree" else 1
        first, again = answered(UPLOAD, {"seed": str(replay["seed"]), "draw": draw, "inputs": inputs})
        assert first == again
        body, score, _ = first
        uploaded = json.loads(body)
        assert (int(uploaded["seed"]), uploaded["moves"]) == (replay["seed"], replay["moves"])
        verdict = check_literally(body.encode())
        assert (verdict.status, verdict.ruleset) == (Status.VERIFIED, RULESET)
        assert (verdict.score, verdict.undos) == (score, inputs.count("Undo")) == (replay["final_score"], verdict.undos)
        assert list(verdict.undo_places) == uploaded["undo_places"]


def boards_of(chance, seed, draw, moves):
    """The boards of a game in which the player moves runs and waste cards where they fit, or else turns the stock."""
    game = Game(deal(seed), MAY_19, draw=draw)
    for _ in range(moves):
        yield game.board
        open_cards = {pile: sum(card < FACE_DOWN for card in game.board[pile]) for pile in COLUMNS}
        runs = [(WASTE, 1), *((pile, size) for pile, size in open_cards.items() if size < len(game.board[pile]))]
        home = [Move(pile, to, 1) for pile in (*COLUMNS, WASTE) for to in FOUNDATIONS]
        onto = [Move(pile, to, size) for pile, size in runs for to in COLUMNS]
        chance.shuffle(onto)
        legal = (move for move in (*home, *onto, STOCK_CLICK) if play(game.board, move, draw, lenient=False))
        if game.play(next(legal, STOCK_CLICK)) is None:
            return


SEARCHED = 400  # positions; the page's own limit is somewhat higher


def value(board):
    """Rate a board by its cards that are hidden or in the stock, then by its cards on foundations."""
    hidden = sum(card >= FACE_DOWN for pile in COLUMNS for card in board[pile])
    return -hidden - len(board[STOCK]) - len(board[WASTE]), sum(len(board[pile]) for pile in FOUNDATIONS)


def goes_on(board, draw):
    """Return whether any moves improve the board, by a plain search. None if the search has too many boards."""
    clicked, at = [], board
    while at not in clicked and (at[STOCK] or at[WASTE]):
        clicked.append(at)
        at = play(at, STOCK_CLICK, draw, lenient=False).board
    tops = {each[WASTE][-1:] for each in clicked if each[WASTE]}
    seen, edge = set(), [board]
    for here in edge:
        state = (*(frozenset(here[begin:end]) for begin, end in ((0, 4), (4, 11))), here[STOCK:])
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > SEARCHED:
            return None
        sources = [(here, pile, size) for pile in (*FOUNDATIONS, *COLUMNS, WASTE) for size in range(1, 14)]
        sources += [((*here[:WASTE], top), WASTE, 1) for top in tops]
        for held, source, size in sources:
            for target in (*FOUNDATIONS, *COLUMNS):
                played = size <= len(held[source]) and play(held, Move(source, target, size), draw, lenient=False)
                if played and (source == WASTE or value(played.board) > value(board)):
                    return True
                if played:
                    edge.append(played.board)
    return False


def test_game_is_stuck_when_no_moves_improve_it(answered):
    """The page reports a stuck game exactly where a plain search can't turn up or play another card."""
    chance = random.Random(5)
    asked = [
        (board, draw)
        for seed in range(40)
        for draw in (1, 3)
        for board in list(boards_of(chance, seed, draw, 150))[10::20]
    ]
    answers = answered(ADVICE, [{"position": position_of(board), "draw": draw} for board, draw in asked])
    expected = [goes_on(board, draw) for board, draw in asked]
    pairs = [(answer["stuck"], not on) for answer, on in zip(answers, expected, strict=True) if on is not None]
    assert len(pairs) > 300
    assert all(said == true for said, true in pairs)
    assert sum(true for _, true in pairs) >= 3


CIRCLED = {"seed": "1364344768803972", "draw": 1, "stray": 0}  # two hints of this game once alternated without end


def test_hints_lead_to_the_end_of_a_game_without_a_solver(answered):
    """The hints never form a circle, even if the player sometimes makes another move or an undo."""
    followed = [{"seed": str(seed), "draw": draw, "stray": 0} for seed in range(30) for draw in (1, 3)]
    strayed = [{"seed": str(seed), "draw": draw, "stray": 20} for seed in range(1, 16) for draw in (1, 3)]
    first, *ends = answered(HINTED, [CIRCLED, *followed, *strayed], workers=False)
    assert (first["end"] in ("stuck", "undo"), first["repeats"]) == (True, [])
    assert {each["end"] for each in ends[: len(followed)]} <= {"won", "stuck", "undo"}
    assert sum(each["end"] == "won" for each in ends[: len(followed)]) > len(followed) / 3
    assert not any(each["solved"] or each["repeats"] for each in ends)


def test_hints_follow_the_win_that_the_solver_finds(answered):
    """Each solved deal is won by following the hints."""
    asked = [{"seed": str(seed), "draw": draw, "stray": 0} for seed in range(8) for draw in (1, 3)]
    ends = answered(HINTED, asked)
    assert {each["end"] for each in ends} == {"won"}
    assert len(ends) >= 5
    assert [each["repeats"] for each in ends if each["repeats"]] == []


SOLVED = """async (asked) => {
  const { deal, isWon, play } = await web("klondike.js");
  const { solve } = await web("solver.js");
  const found = [];
  for (const { seed, draw } of asked) {
    let position = deal(BigInt(seed));
    const { moves } = await solve(position, draw);
    for (const move of moves ?? []) position = play(position, move, draw).position;
    found.push(isWon(position));
  }
  return found;
}"""


def test_page_finds_the_win_of_each_day_that_was_chosen_for_one(answered):
    """Its search has the order of moves and the budget of the one that chose the days."""
    days = [date(2027, 1, 1) + timedelta(days) for days in range(20)]
    asked = [{"seed": str(daily_seed(day)), "draw": draw} for day in days for draw in (1, 3)]
    assert all(answered(SOLVED, asked))


LOST = """async ({ position, draw }) => {
  const { solve } = await web("solver.js");
  const { moves, lost } = await solve(position, draw);
  return { moves, lost };
}"""


def test_page_calls_only_a_game_without_a_win_lost(answered):
    """A search that ends early proves nothing; one of all moves does."""
    replay, moves = STUCK
    game = Game(deal(replay["seed"]), MAY_19, draw=3)
    opening = answered(LOST, {"position": position_of(game.board), "draw": 3})
    assert not opening["lost"]
    for move in moves:
        assert game.play(STOCK_CLICK if move is None else Move(*map(PILE_NAMES.index, move[:2]), move[2]))
    assert answered(LOST, {"position": position_of(game.board), "draw": 3}) == {"moves": None, "lost": True}


def finishing(move):
    """Return a move of the page as a move of the Python engine."""
    if move["from"] == "s":
        return STOCK_CLICK
    return Move(PILE_NAMES.index(move["from"]), PILE_NAMES.index(move["to"]), move["count"])


def test_finish_button_always_leads_to_the_win(answered):
    """The page offers to finish a game without hidden cards, always when drawing one, and then its moves win."""
    offered = with_stock = 0
    for win in wins(RULESET, undo=False):
        replay = win["replay"]
        draw = 3 if replay["draw_mode"] == "DrawThree" else 1
        game = Game(deal(replay["seed"]), MAY_19, draw=draw)
        boards = []
        for move in read(replay).moves:
            boards.append(game.board)
            game.play(move)
        answers = answered(ADVICE, [{"position": position_of(board), "draw": draw} for board in boards])
        for board, answer in zip(boards, answers, strict=True):
            hidden = any(card >= FACE_DOWN for pile in COLUMNS for card in board[pile])
            assert answer["finish"] is None if hidden else (answer["finish"] or draw == 3)
            if answer["finish"]:
                ending = Game(board, MAY_19, draw=draw)
                assert all(ending.play(finishing(move)) for move in answer["finish"])
                assert ending.won
                offered += 1
                with_stock += bool(board[STOCK] or board[WASTE])
    assert offered > with_stock > 0
