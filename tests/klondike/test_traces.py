"""The engine and the game's own engine agree on every attempt of the recorded traces."""

import pytest

from solisync.klondike.deal import deal
from solisync.klondike.game import Game
from solisync.klondike.scoring import RULESETS
from tests.klondike.vectors import board_text, fnv, lines, move_of


def follow(trace, ruleset):
    """Repeat every attempt, and check that it ends as recorded; return the number of attempts."""
    draw = 3 if trace["draw_mode"] == "DrawThree" else 1
    game = Game(deal(trace["seed"]), ruleset, draw=draw, zen=trace["mode"] == "Zen", undo=trace["mode"] != "Challenge")
    undos = 0
    attempts = zip(trace["inputs"], trace["accepted"], trace["scores"], trace["boards"], strict=True)
    for tried, accepted, score, digest in attempts:
        done = game.undo() if tried == "Undo" else game.play(move_of(tried)) is not None
        undos += done and tried == "Undo"
        assert (done, game.score, fnv(board_text(game.board))) == (accepted, score, digest), tried
    assert board_text(game.board) == trace["last_board"]
    assert (game.won, game.moves, game.turns) == (trace["won"], trace["moves"], trace["recycles"])
    assert undos == trace["undos"]
    return len(trace["inputs"])


@pytest.mark.parametrize("ruleset", RULESETS, ids=lambda ruleset: ruleset.name)
def test_every_attempt_ends_as_recorded(ruleset):
    """Acceptance, score and board agree after each attempt; moves, undos and turns of the waste at the end."""
    traces = lines(f"traces_{ruleset.name}")
    assert {trace["draw_mode"] for trace in traces} == {"DrawOne", "DrawThree"}
    assert sum(follow(trace, ruleset) for trace in traces) > 2_000
