"""Reading an uploaded replay, or refusing it as unreadable, for any bytes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solisync.klondike import Status, check_literally
from solisync.klondike.recording import Reason, UnreadableError, read_recording
from solisync.klondike.rules import STOCK, STOCK_CLICK, WASTE, Move
from solisync.rules.replays import read_replay
from tests.harness.payloads import OTHER_SPELLINGS
from tests.klondike.vectors import encoded, read

GOOD = {
    "schema_version": 2,
    "seed": 2**64 - 1,
    "draw_mode": "DrawThree",
    "mode": "Classic",
    "time_seconds": 100,
    "final_score": 650,
    "moves": ["StockClick", {"Move": {"from": {"Tableau": 6}, "to": {"Foundation": 3}, "count": 1}}],
    "share_url": None,
}


def reason(body):
    """Return why a body is unreadable, or None if it is readable."""
    try:
        read_recording(body)
    except UnreadableError as error:
        return error.reason
    return None


def with_fields(**fields):
    return encoded(GOOD | fields)


def with_move(move):
    return with_fields(moves=["StockClick", move])


def test_recording_has_seed_modes_score_and_moves():
    recording = read(GOOD)
    assert (recording.seed, recording.draw, recording.mode) == (2**64 - 1, 3, "Classic")
    assert recording.final_score == 650
    assert recording.moves == (STOCK_CLICK, Move(10, 3, 1))


def test_move_from_stock_to_waste_is_not_read_as_a_click():
    """The move is read unchanged, and every board refuses it."""
    recorded = {"Move": {"from": "Stock", "to": "Waste", "count": 0}}
    assert read_recording(with_move(recorded)).moves[1] == Move(STOCK, WASTE, 0) != STOCK_CLICK


def test_draw_and_recycle_of_older_clients_are_clicks():
    """Older clients wrote two moves for a click on the stock."""
    assert read_recording(with_fields(schema_version=1, moves=["Draw", "Recycle"])).moves == (STOCK_CLICK,) * 2


@pytest.mark.parametrize("mode", ["Classic", "Zen", "Challenge", "TimeAttack", {"Difficulty": "Easy"}])
def test_mode_decides_on_undos_and_scores(mode):
    """A mode with a level is read without the level. Only Challenge has no undo; only Zen has no score."""
    recording = read_recording(with_fields(mode=mode))
    assert recording.mode == (mode if isinstance(mode, str) else "Difficulty")
    assert recording.allows_undo is (mode != "Challenge")
    assert recording.is_zen is (mode == "Zen")


@pytest.mark.parametrize(
    ("spelled", "read_as"),
    [
        ("650", 650),
        ("650.0", 650),
        ("6.5e2", 650),
        ("-0.0", 0),
        ("650.5", None),
        ("1e999", None),
        ("1" * 5000, None),
    ],
)
def test_score_may_be_any_spelling_of_a_whole_number(spelled, read_as):
    """650.0 is 650. No game can have a score that isn't whole."""
    body = json.dumps(GOOD).replace('"final_score": 650', f'"final_score": {spelled}').encode()
    assert read_recording(body).final_score == read_as


@pytest.mark.parametrize("seed", [None, -1, 2**64, 1.5, -1.0, 2.0**53, True, [], {}, 10**4000])
def test_seed_outside_of_64_bits_counts_as_absent(seed):
    assert reason(with_fields(seed=seed)) is Reason.NO_SEED


@pytest.mark.parametrize("seed", [0, 5, 2**53 + 1, 2**64 - 1])
def test_seed_may_be_text(seed):
    """Text in the shortest spelling suits clients whose numbers are doubles."""
    assert read_recording(with_fields(seed=str(seed))) == read_recording(with_fields(seed=seed))


@pytest.mark.parametrize("seed", OTHER_SPELLINGS)
def test_other_spelling_of_a_seed_counts_as_absent(seed):
    assert reason(with_fields(seed=seed)) is Reason.NO_SEED


def as_doubles(value):
    """Return a JSON value as a client writes it whose numbers are all doubles."""
    if isinstance(value, dict):
        return {name: as_doubles(each) for name, each in value.items()}
    if isinstance(value, list):
        return [*map(as_doubles, value)]
    return float(value) if type(value) is int else value


@given(
    seed=st.integers(0, 2**53 - 1) | st.integers(2**53 - 9, 2**53 - 1),
    moves=st.lists(
        st.just("StockClick")
        | st.builds(
            lambda source, target, count: {"Move": {"from": {"Tableau": source}, "to": target, "count": count}},
            st.integers(0, 6),
            st.builds(lambda place: {"Foundation": place}, st.integers(0, 3)),
            st.integers(0, 13),
        ),
        min_size=1,
    ),
    places=st.lists(st.integers(0, 5)).map(sorted),
)
def test_whole_doubles_are_read_as_integers(seed, moves, places):
    """The checker and the stored header read the same game from both spellings."""
    replay = GOOD | {"seed": seed, "moves": moves, "undo_places": places, "recorded_at": "2026-11-24"}
    doubles = encoded(as_doubles(replay))
    assert read_recording(doubles) == read_recording(encoded(replay))
    assert (read_replay(doubles).header.seed, read_replay(doubles).raw) == (seed, doubles)


@pytest.mark.parametrize("moves", [None, [], "", {}, 0])
def test_replay_without_moves_is_unreadable(moves):
    """The original's browser page uploads such replays."""
    assert reason(with_fields(moves=moves)) is Reason.NO_MOVES


@pytest.mark.parametrize("field", ["mode", "draw_mode", "final_score"])
@pytest.mark.parametrize("value", [None, True, [], {}, "x", {"Difficulty": 1}, {"Difficulty": "Easy", "x": 1}])
def test_field_of_another_shape_is_unreadable(field, value):
    assert reason(with_fields(**{field: value})) is Reason.SHAPE
    assert reason(encoded({name: value for name, value in GOOD.items() if name != field})) is Reason.SHAPE


@pytest.mark.parametrize(
    "move",
    [
        None,
        1,
        "stockclick",
        "Undo",
        [],
        {},
        {"Move": None},
        {"Move": {}},
        {"Move": {"from": "Waste", "to": {"Tableau": 1}, "count": 1}, "x": 1},
        *(
            {"Move": {"from": place, "to": {"Tableau": 1}, "count": 1}}
            for place in (None, 1, "waste", [], {}, {"Tableau": 7}, {"Tableau": -1}, {"Foundation": 4}, {"Pile": 99})
        ),
        {"Move": {"from": {"Tableau": 1.5}, "to": {"Tableau": 1}, "count": 1}},
        {"Move": {"from": {"Tableau": 1, "Foundation": 1}, "to": {"Tableau": 1}, "count": 1}},
        *(
            {"Move": {"from": "Waste", "to": {"Tableau": 1}, "count": count}}
            for count in (None, -1, 1.5, -1.0, "1", True)
        ),
    ],
)
def test_move_of_another_shape_makes_the_replay_unreadable(move):
    assert reason(with_move(move)) is Reason.SHAPE


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"\xff",
        b"\xef\xbb\xbf" + encoded(GOOD),
        encoded(GOOD).decode().encode("utf-16"),
        encoded(GOOD).replace(b"650", b"NaN"),
        encoded(GOOD).replace(b"650", b"Infinity"),
        b"[" * 2**20,
        b'{"a":' * 2**17,
    ],
)
def test_body_other_than_a_json_object_is_unreadable(body):
    """Examples are other encodings, other constants and brackets without an end."""
    assert reason(body) is Reason.SHAPE


@pytest.mark.parametrize(
    "extra",
    ['"x": "\\ud800"', '"x": ' + "9" * 5000, '"\\udc00": 1', '"x": ' + "[" * 62 + "]" * 62, '"seed": "x", "seed": 5'],
)
def test_unknown_fields_are_ignored(extra):
    """Unknown fields may have halves of surrogate pairs or deep nesting. Of duplicate keys the last one counts."""
    body = encoded(GOOD).decode().replace('"share_url": null', extra).encode()
    assert reason(body) is None
    assert check_literally(body).status is Status.PENDING


def test_move_with_half_a_surrogate_pair_is_unreadable():
    """The half may be in a name or a value."""
    assert reason(with_move({"Move": {"\ud800": 1}})) is Reason.SHAPE
    assert reason(with_move("\ud800")) is Reason.SHAPE
    assert reason(with_fields(mode="\ud800")) is Reason.SHAPE


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["StockClick", "Stock", "Waste", "Classic", "Zen", "Move", "DrawOne", 0, 1, 5, 2**64]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["Move", "from", "to", "count", "Tableau", "Foundation", "\ud800"]), inner)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*GOOD]), JSON), st.lists(JSON, max_size=3))
def test_any_json_in_any_place_gets_a_verdict(fields, moves):
    """No field causes an exception, and only readable replays go on to a search."""
    body = json.dumps(GOOD | fields | ({"moves": moves} if moves else {})).encode()
    verdict = check_literally(body)
    assert (verdict.status is Status.UNREADABLE) == (reason(body) is not None)
    assert verdict.status in (Status.UNREADABLE, Status.REFUTED, Status.PENDING)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_unreadable(body):
    assert check_literally(body).status is Status.UNREADABLE
