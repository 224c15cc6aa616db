"""What the moves of a replay prove without a verdict: docs/verification.md "Evidence"."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.klondike import evidence, in_words, make_timeline, prove
from solisync.klondike.timeline import STEPS_MAX
from solisync.klondike.verdict import MOVES_MAX
from tests.klondike.vectors import BY_NAME, checked, encoded, read, started, wins

WINS = wins("2026-05-19", undo=False)


def changed(number=0, **fields):
    return encoded({**WINS[number]["replay"], **fields})


def test_higher_claim_shows_the_score_of_the_moves():
    """All moves are legal and win, with another score."""
    body = changed(final_score=1110.0)
    proved = prove(body)
    score, moves = WINS[0]["replay"]["final_score"], WINS[0]["replay"]["moves"]
    assert (proved.moves, proved.index, proved.input) == (len(moves), None, None)
    assert (proved.score, proved.won) == (score, True)
    assert in_words("1110.0", proved) == f"claims 1,110; its moves prove {score:,}"


def test_moves_that_stop_early_do_not_win():
    proved = prove(changed(moves=WINS[0]["replay"]["moves"][:50]))
    assert (proved.moves, proved.index, proved.won) == (50, None, False)
    assert in_words("90", proved).endswith(", and do not win")


@pytest.mark.parametrize("left_out", [5, 26, 61])
def test_evidence_ends_at_the_first_illegal_move(left_out):
    """The engine accepts each move before it, refuses it, and has the same score; the timeline has just these moves."""
    replay = copy.deepcopy(WINS[0]["replay"])
    del replay["moves"][left_out]
    body, recording = encoded(replay), read(replay)
    proved, timeline = evidence(body)
    game = started(recording, BY_NAME["2026-05-19"])
    assert all(game.play(move) for move in recording.moves[: proved.index])
    assert game.play(recording.moves[proved.index]) is None
    assert (proved.moves, proved.score, proved.won) == (proved.index, game.score, False)
    steps = json.loads(timeline)["steps"]
    assert len(steps) == proved.moves
    assert steps[-1]["score"] == proved.score
    text = in_words("90", proved)
    assert text.startswith(f"move {proved.index + 1} is illegal: {proved.input}; ")


MOVE = {"from": {"Tableau": 6}, "to": {"Tableau": 0}, "count": 1}


@pytest.mark.parametrize(
    ("move", "words"),
    [
        ({}, "queen of diamonds onto 7 of spades"),
        ({"count": 0}, "no cards from column 7 onto 7 of spades"),
        ({"count": 10**50}, "more cards than column 7 has onto 7 of spades"),
        ({"count": 2}, "a face-down card and 1 more onto 7 of spades"),
        ({"to": {"Tableau": 6}}, "queen of diamonds onto its own pile"),
        ({"to": {"Foundation": 1}}, "queen of diamonds onto foundation 2, which is empty"),
        ({"to": "Waste"}, "queen of diamonds onto the waste"),
        ({"from": "Stock"}, "6 of diamonds from the stock onto 7 of spades"),
        ({"from": "Waste"}, "more cards than the waste has onto 7 of spades"),
        ({"from": {"Foundation": 0}}, "more cards than foundation 1 has onto 7 of spades"),
    ],
)
def test_illegal_move_is_named_by_its_cards(move, words):
    """The cards are those of the board at that move."""
    assert prove(changed(seed=2202, moves=[{"Move": MOVE | move}])).input == words


def test_click_on_nothing_is_named():
    """Stock and waste of a won game are empty; a move after the win is illegal, too."""
    moves = WINS[0]["replay"]["moves"]
    proved = prove(changed(moves=[*moves, "StockClick"]))
    assert (proved.index, proved.input, proved.won) == (len(moves), "the game is won before it", True)


def test_reported_undos_count_as_far_as_they_fit():
    """An upload that names its undos is played with them, unless an undo is impossible."""
    replay = wins("2026-05-19", undo=True)[0]["replay"]
    verdict = checked(encoded(replay))
    places = list(verdict.undo_places)
    body = encoded({**replay, "undo_places": places, "final_score": 1110})
    proved, timeline = evidence(body)
    assert (proved.score, proved.won, proved.index) == (verdict.score, True, None)
    assert len(json.loads(timeline)["steps"]) == verdict.moves + verdict.undos
    assert json.loads(timeline) == json.loads(make_timeline(encoded(replay), verdict))
    wrong = prove(encoded({**replay, "undo_places": [0, *places]}))
    assert wrong == prove(encoded(replay))
    assert wrong.index is not None


def test_long_recording_is_proved_without_a_timeline():
    proved, timeline = evidence(changed(moves=["StockClick"] * (STEPS_MAX + 1)))
    assert (proved.moves, timeline) == (STEPS_MAX + 1, None)


def test_recording_that_no_check_plays_proves_nothing():
    """A recording of more than MOVES_MAX moves isn't played for its evidence either."""
    clicks = ["StockClick"] * MOVES_MAX
    assert prove(changed(moves=clicks)).moves == MOVES_MAX
    longer = changed(moves=[*clicks, "StockClick"])
    assert prove(longer) is evidence(longer) is None


@given(st.binary())
def test_arbitrary_bytes_prove_nothing(body):
    """An unreadable replay proves nothing."""
    assert prove(body) is evidence(body) is None
