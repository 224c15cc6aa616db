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
from tests.pages.engine import ADVICE, DECKS, FOLLOW, UPLOAD, position_of
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


def fits_somewhere(board, draw):
    """A plain search: whether a card of columns, stock or waste fits anywhere, by clicks on the stock alone."""
    seen = set()
    while board not in seen:
        seen.add(board)
        for source in (*COLUMNS, WASTE):
            for size in range(1, len(board[source]) + 1 if source != WASTE else min(2, len(board[source]) + 1)):
                for target in (*FOUNDATIONS, *COLUMNS):
                    whole = target in COLUMNS and not board[target] and size == len(board[source]) and source in COLUMNS
                    if not whole and play(board, Move(source, target, size), draw, lenient=False):
                        return True
        clicked = play(board, STOCK_CLICK, draw, lenient=False)
        board = clicked.board if clicked else board
    return False


def test_stuck_is_told_when_it_is_so(visitor):
    """There is no hint exactly where a plain search finds no card that fits anywhere."""
    page = visitor.open("/account")
    chance = random.Random(5)
    asked = [
        (board, draw)
        for seed in range(40)
        for draw in (1, 3)
        for board in list(boards_of(chance, seed, draw, 150))[10::20]
    ]
    answers = answered(page, ADVICE, [{"position": position_of(board), "draw": draw} for board, draw in asked])
    expected = [fits_somewhere(board, draw) for board, draw in asked]
    assert len(expected) > 300
    assert [answer["useful"] > 0 for answer in answers] == expected
    assert expected.count(False) >= 3


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
