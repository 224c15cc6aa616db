"""Playback of the timeline of a verified replay needs no rule of the game."""

import json

import msgspec
import pytest

from solisync.klondike import Timeline, check_literally, make_timeline
from solisync.klondike.rules import COLUMNS
from solisync.klondike.scoring import RULESETS
from solisync.klondike.timeline import STEPS_MAX
from tests.klondike.playback import Player
from tests.klondike.vectors import BY_NAME, checked, encoded, move_of, read, started, wins

NAMES = [ruleset.name for ruleset in RULESETS]


def timeline_of(replay):
    body = encoded(replay)
    return make_timeline(body, checked(body))


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("ruleset", NAMES)
def test_playback_equals_the_game(ruleset, undo, full):
    """Each position and score is the engine's; steps = moves + undos."""
    for win in wins(ruleset, undo=undo, full=full)[: None if full else 4]:
        replay = win["replay"]
        recording = read(replay)
        shown = json.loads(timeline_of(replay))
        assert (shown["seed"], shown["draw_mode"]) == (str(replay["seed"]), replay["draw_mode"])
        assert shown["mode"] == (replay["mode"] if isinstance(replay["mode"], str) else "Difficulty")
        assert len(shown["steps"]) == len(replay["moves"]) + shown["undos"]
        game, player = started(recording, BY_NAME[shown["ruleset"]]), Player(shown["deal"])
        assert player.board == game.board
        moves = iter(recording.moves)
        for step in shown["steps"]:
            assert game.undo() if step["input"] == "undo" else game.play(next(moves))
            player.show(step)
            assert (player.board, step["score"]) == (game.board, game.score)
        assert game.won
        assert step["score"] == replay["final_score"]


def test_timeline_has_the_documented_shape():
    """Names and their order are fixed. The columns of the deal have 1 to 7 cards, the stock 24."""
    shown = json.loads(timeline_of(wins("2026-05-19", undo=True)[0]["replay"]))
    assert list(shown) == ["seed", "draw_mode", "mode", "ruleset", "undos", "deal", "steps"]
    assert [len(cards) for cards in shown["deal"]["tableau"]] == list(range(1, len(COLUMNS) + 1))
    assert len(shown["deal"]["stock"]) == 24
    for step in shown["steps"]:
        assert list(step) == ["input", "from", "to", "cards", "flipped", "score"]
        assert step["input"] in ("stock", "move", "undo")
        assert step["cards"]
    assert msgspec.json.decode(json.dumps(shown), type=Timeline).undos == shown["undos"]


def test_undo_is_the_reversed_move():
    """The step has the same cards and the same flipped card, with the piles exchanged."""
    steps = json.loads(timeline_of(wins("2026-05-19", undo=True)[2]["replay"]))["steps"]
    made = []
    for step in steps:
        if step["input"] != "undo":
            made.append(step)
            continue
        undone = made.pop()
        assert (step["from"], step["to"]) == (undone["to"], undone["from"])
        assert (step["cards"], step["flipped"]) == (undone["cards"], undone["flipped"])


def test_timeline_is_small():
    """The limit is 60 KB for a game of 400 moves, here in proportion."""
    for win in wins("2026-05-19", undo=False):
        assert len(timeline_of(win["replay"])) < 60_000 / 400 * len(win["replay"]["moves"])


def test_unverified_replay_has_no_timeline():
    """A replay that needs a search has none either."""
    replay = wins("2026-05-19", undo=True)[0]["replay"]
    body = encoded(replay)
    assert make_timeline(body, check_literally(body)) is None
    assert timeline_of(replay | {"final_score": -5}) is None
    assert make_timeline(b"", check_literally(b"")) is None


def test_game_of_more_than_2000_steps_has_no_timeline():
    """A king that moves to and fro between columns makes steps without points."""
    replay = wins("2026-05-01", undo=False)[0]["replay"]
    last = replay["moves"][-1]
    source = move_of(last).source - 4
    there = {"Move": {"from": {"Tableau": source}, "to": {"Tableau": (source + 1) % 7}, "count": 1}}
    back = {"Move": {"from": {"Tableau": (source + 1) % 7}, "to": {"Tableau": source}, "count": 1}}
    third = {"Move": {"from": {"Tableau": (source + 1) % 7}, "to": {"Tableau": (source + 2) % 7}, "count": 1}}
    home = {"Move": {"from": {"Tableau": (source + 2) % 7}, "to": {"Tableau": source}, "count": 1}}
    for extra, shown in ((0, True), (1, False)):
        wanted = STEPS_MAX + extra - len(replay["moves"])
        moves = [there, third, home] if wanted % 2 else []
        moves += [there, back] * ((wanted - len(moves)) // 2)
        longer = replay | {"moves": [*replay["moves"][:-1], *moves, last]}
        assert len(longer["moves"]) == STEPS_MAX + extra
        assert checked(encoded(longer)).undos == 0
        assert (timeline_of(longer) is not None) is shown


def test_verdict_on_another_replay_raises_value_error():
    """A wrong timeline would be worse."""
    first, second = (encoded(win["replay"]) for win in wins("2026-05-19", undo=False)[:2])
    with pytest.raises(ValueError, match="another replay"):
        make_timeline(second, checked(first))
