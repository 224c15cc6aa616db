"""The engine of the page to play and that of the service give the same answers, and agree on the same games."""

import json
import random

import pytest

from solisync.klondike import Status, check_literally
from solisync.klondike.deal import deal
from solisync.klondike.game import Game
from solisync.klondike.rules import COLUMNS, FACE_DOWN, FOUNDATIONS, STOCK, STOCK_CLICK, WASTE, Move, play
from solisync.klondike.scoring import MAY_19
from tests.klondike.vectors import board_text, fnv, lines, read, recorded, wins
from tests.pages.engine import ADVICE, DECKS, FOLLOW, HINTED, UPLOAD, position_of
from tests.pages.visitor import answered

RULESET = MAY_19.name
EDGES = (0, 2**53 - 1, 2**53, 2**53 + 1, 2**64 - 1)
MUTATIONS = {
    "points": ("const WASTE_TO_COLUMN = 5;", "const WASTE_TO_COLUMN = 10;"),
    "rotation": ("[c, d, b, 7]", "[c, d, b, 9]"),
    "fan": ("s.slice(-draw) : w;", "s.slice(-draw).reverse() : w;"),
}


def decks_differ(page):
    vectors = lines("deals")
    found = answered(page, DECKS, [str(vector["seed"]) for vector in vectors])
    return [vector["seed"] for vector, deck in zip(vectors, found, strict=True) if deck != vector["deck"]]


def traces_differ(page):
    """The traces of the game's own engine that come out differently in the page, which plays mode Classic alone."""
    differ = []
    for number, trace in enumerate(lines(f"traces_{RULESET}")):
        expected = [
            (accepted, 0 if trace["mode"] == "Zen" else score, board)
            for tried, accepted, score, board in zip(
                trace["inputs"], trace["accepted"], trace["scores"], trace["boards"], strict=True
            )
            if trace["mode"] != "Challenge" or tried != "Undo"  # which Challenge refuses
        ]
        inputs = [tried for tried in trace["inputs"] if trace["mode"] != "Challenge" or tried != "Undo"]
        asked = {"seed": str(trace["seed"]), "draw": 3 if trace["draw_mode"] == "DrawThree" else 1, "inputs": inputs}
        (played,) = answered(page, FOLLOW, [asked])
        found = [
            (accepted, 0 if trace["mode"] == "Zen" else score, fnv(text)) for accepted, score, text in played["tried"]
        ]
        end = (played["won"], played["moves"], played["turns"], len(played["undos"]))
        if found != expected or end != (trace["won"], trace["moves"], trace["recycles"], trace["undos"]):
            differ.append(number)
    return differ


def test_the_vectors_come_out(visitor):
    """Each deck, and of each trace every attempt, score and board, and its end."""
    page = visitor.open("/account")
    assert decks_differ(page) == []
    assert traces_differ(page) == []


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_engine_is_found_out(visitor, mutation):
    """Each of three small mistakes makes the vectors differ."""
    right, wrong = MUTATIONS[mutation]

    def mutate(route):
        answer = route.fetch()
        assert answer.text().count(right) == 1
        route.fulfill(response=answer, body=answer.text().replace(right, wrong))

    visitor.context.route("**/web/klondike.js", mutate)
    page = visitor.open("/account")
    assert decks_differ(page) or traces_differ(page)


def random_move(chance):
    """Any move, nearly always illegal."""
    piles = (*FOUNDATIONS, *COLUMNS, STOCK, WASTE)
    return Move(chance.choice(piles), chance.choice(piles), chance.randint(0, 4))


def legal_move(chance, board, draw):
    """A legal move; a click on the stock if there is no other."""
    runs = [
        (pile, size)
        for pile in (*FOUNDATIONS, *COLUMNS, WASTE)
        for size in range(1, 1 + (sum(card < FACE_DOWN for card in board[pile]) if pile in COLUMNS else 1))
    ]
    moves = [STOCK_CLICK, *(Move(pile, to, size) for pile, size in runs for to in (*FOUNDATIONS, *COLUMNS))]
    chance.shuffle(moves)
    return next((move for move in moves if play(board, move, draw, lenient=False)), STOCK_CLICK)


def random_game(chance, seed, attempts):
    """What to try in a game, and how the engine of the service answers each of it."""
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


def test_random_games_come_out(visitor):
    """200 games of 300 attempts, more than half of them refused, undone ones among them; seeds of all sizes."""
    page = visitor.open("/account")
    chance = random.Random(28)
    seeds = [*EDGES, *(chance.getrandbits(chance.choice((10, 53, 64))) for _ in range(195))]
    refused = 0
    for begin in range(0, len(seeds), 20):
        games = [random_game(chance, seed, 300) for seed in seeds[begin : begin + 20]]
        played = answered(page, FOLLOW, [asked for asked, _ in games])
        for found, (asked, answers) in zip(played, games, strict=True):
            assert found["tried"] == answers, asked["seed"]
            refused += sum(not accepted for accepted, _, _ in answers)
    assert refused > 20_000


@pytest.mark.parametrize("undo", [False, True])
def test_uploads_are_verified_literally(visitor, undo):
    """Won games as the page uploads them: the same score, the undos where they were; also after a reload."""
    page = visitor.open("/account")
    for win in wins(RULESET, undo=undo):
        replay, inputs = win["replay"], win["truth"]["inputs"]
        if replay["mode"] in ("Zen", "Challenge"):
            continue
        draw = 3 if replay["draw_mode"] == "DrawThree" else 1
        first, again = answered(page, UPLOAD, {"seed": str(replay["seed"]), "draw": draw, "inputs": inputs})
        assert first == again
        body, score, _ = first
        uploaded = json.loads(body)
        assert (uploaded["seed"], uploaded["moves"]) == (replay["seed"], replay["moves"])
        verdict = check_literally(body.encode())
        assert (verdict.status, verdict.ruleset) == (Status.VERIFIED, RULESET)
        assert (verdict.score, verdict.undos) == (score, inputs.count("Undo")) == (replay["final_score"], verdict.undos)
        assert list(verdict.undo_places) == uploaded["undo_places"]


def boards_of(chance, seed, draw, moves):
    """The boards of a game whose player moves whole runs and cards of the waste wherever they fit, else the stock."""
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


SEARCHED = 400  # positions; the page gives a search up after somewhat more


def value(board):
    """How good a board is: cards that are hidden or in the stock, then cards at home."""
    hidden = sum(card >= FACE_DOWN for pile in COLUMNS for card in board[pile])
    return -hidden - len(board[STOCK]) - len(board[WASTE]), sum(len(board[pile]) for pile in FOUNDATIONS)


def goes_on(board, draw):
    """A plain search: whether any moves make the board better; None if there are too many boards to look at."""
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


def test_a_game_is_stuck_when_no_moves_lead_on(visitor):
    """The page says so exactly where a plain search finds no moves that turn up, play or send home another card."""
    page = visitor.open("/account")
    chance = random.Random(5)
    asked = [
        (board, draw)
        for seed in range(40)
        for draw in (1, 3)
        for board in list(boards_of(chance, seed, draw, 150))[10::20]
    ]
    answers = answered(page, ADVICE, [{"position": position_of(board), "draw": draw} for board, draw in asked])
    expected = [goes_on(board, draw) for board, draw in asked]
    pairs = [(answer["stuck"], not on) for answer, on in zip(answers, expected, strict=True) if on is not None]
    assert len(pairs) > 300
    assert all(said == true for said, true in pairs)
    assert sum(true for _, true in pairs) >= 3


def test_hints_lead_to_a_win_or_to_the_end(visitor):
    """Followed one by one, they never go in a circle; neither does any hint of a player who strays."""
    page = visitor.open("/account")
    circled = {"seed": "1364344768803972", "draw": 1, "stray": 0}  # once two hints followed each other for ever
    followed = [{"seed": str(seed), "draw": draw, "stray": 0} for seed in range(30) for draw in (1, 3)]
    strayed = [{"seed": str(seed), "draw": draw, "stray": 40} for seed in range(1, 16) for draw in (1, 3)]
    first, *ends = answered(page, HINTED, [circled, *followed, *strayed])
    assert (first["end"], first["repeats"]) == ("stuck", [])
    assert {each["end"] for each in ends[: len(followed)]} == {"won", "stuck"}
    assert sum(each["end"] == "won" for each in ends[: len(followed)]) > len(followed) / 3
    assert [each["repeats"] for each in ends if each["repeats"]] == []


def test_finishing_always_succeeds(visitor):
    """It is offered exactly where no card is hidden and stock and waste are empty, and its moves lead to the win."""
    page = visitor.open("/account")
    offered = 0
    for win in wins(RULESET, undo=False):
        replay = win["replay"]
        draw = 3 if replay["draw_mode"] == "DrawThree" else 1
        game = Game(deal(replay["seed"]), MAY_19, draw=draw)
        boards = []
        for move in read(replay).moves:
            boards.append(game.board)
            game.play(move)
        answers = answered(page, ADVICE, [{"position": position_of(board), "draw": draw} for board in boards])
        for board, answer in zip(boards, answers, strict=True):
            hidden = any(card >= FACE_DOWN for pile in COLUMNS for card in board[pile])
            assert (answer["finish"] is not None) == (not hidden and not board[STOCK] and not board[WASTE])
            offered += answer["finish"] is not None
            if answer["finish"]:
                assert all(move["to"][0] == "f" and move["count"] == 1 for move in answer["finish"])
                assert len(answer["finish"]) == 52 - sum(len(board[pile]) for pile in FOUNDATIONS)
    assert offered
