"""The fields that are read out of a replay (docs/protocol.md "Replays")."""

import json
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.klondike import DRAW_MODES, MODES
from solisync.rules.replays import LEVELS, Fields, decodable, read_header, read_replay, shown_moment
from tests.harness.payloads import OTHER_SPELLINGS

I32 = 2**31 - 1
GOOD = {
    "mode": "Classic",
    "draw_mode": "DrawOne",
    "final_score": 700,
    "time_seconds": 95.5,
    "recorded_at": "2026-11-20",
}


def header(**changes):
    """Return the header of a good replay with these changes; None leaves a field out."""
    replay = {name: value for name, value in (GOOD | changes).items() if value is not None}
    return read_header(msgspec.json.decode(decodable(json.dumps(replay).encode()), type=Fields))


def spelled(**changes):
    """Return the header of a good replay with values as they are spelled in JSON."""
    fields = {name: json.dumps(value) for name, value in GOOD.items()} | changes
    body = "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}"
    return read_header(msgspec.json.decode(body.encode(), type=Fields))


@pytest.mark.parametrize("mode", [*MODES, *({"Difficulty": level} for level in LEVELS)])
@pytest.mark.parametrize("draw_mode", DRAW_MODES)
def test_every_mode_is_read(mode, draw_mode):
    """A mode is text; the mode with a level is read without it."""
    read = header(mode=mode, draw_mode=draw_mode)
    assert (read.mode, read.draw_mode) == (mode if isinstance(mode, str) else "Difficulty", draw_mode)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", "classic"),
        ("mode", 1),
        ("mode", ["Classic"]),
        ("mode", {}),
        ("mode", {"Difficulty": "easy"}),
        ("mode", {"Difficulty": "Easy", "x": "Easy"}),
        ("mode", {"Classic": "Easy"}),
        ("draw_mode", "DrawTwo"),
        ("draw_mode", True),
        ("final_score", "700"),
        ("final_score", True),
        ("final_score", 2**53 + 1),
        ("final_score", -(2**53) - 1),
        ("final_score", [1]),
        ("time_seconds", -0.1),
        ("time_seconds", 2**53 + 1),
        ("recorded_at", "yesterday"),
        ("recorded_at", "2026-02-30"),
        ("recorded_at", "2026-11-20T10:00:00"),
        ("recorded_at", "0001-01-01T00:00:00+02:00"),
        ("recorded_at", "2026-11-20T10:00:00+0100"),
        ("recorded_at", "2026-11-20T12:59:60Z"),
        ("recorded_at", 20261120),
        ("recorded_at", "\ud800"),
        ("recorded_at", "2026-12-31T23:59:60Z"),
        ("recorded_at", "2026-12-31t15:59:60.25-08:00"),
        ("recorded_at", "2026-12-31T23:59:59.1234567890Z"),
        ("recorded_at", "2026-12-31T23:59:59.0000000000+01:00"),
        ("recorded_at", "2026-12-31T23:59:59." + "0" * 1_000_000 + "Z"),
        *((name, None) for name in GOOD),
    ],
)
def test_error_names_a_wrong_field(field, value):
    """The field is missing, has a wrong type or is out of range."""
    with pytest.raises(BadRequest, match=f"`{field}`"):
        header(**{field: value})


@pytest.mark.parametrize(
    "moment", ["2026-12-31t15:59:59.25-08:00", "2026-12-31T23:59:59z", "2026-12-31T15:59:59.123456789-08:00"]
)
def test_times_keep_their_spelling(moment):
    assert header(recorded_at=moment).recorded_at == moment


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("2026-12-31T15:59:59.1234567891-08:00", "2026-12-31T23:59:59.123457Z"),
        ("2026-12-31t23:59:59.0000000000z", "2026-12-31T23:59:59Z"),
        ("2026-12-31", "2026-12-31"),
    ],
)
def test_stored_time_of_more_than_nine_digits_is_shown_as_an_instant(stored, shown):
    """Version 1.0.0 stored any number of digits. Other times and dates are shown as uploaded."""
    assert shown_moment(stored) == shown


@pytest.mark.parametrize("spelling", ["1e400", "-1e400", "9007199254740993e5", "9007199254740992.5", "NaN", "1" * 30])
def test_unusable_numbers_are_refused(spelling):
    """A double can't hold them exactly enough, or at all."""
    with pytest.raises((BadRequest, msgspec.DecodeError)):
        spelled(final_score=spelling)


@pytest.mark.parametrize("field", ["final_score", "time_seconds"])
@pytest.mark.parametrize("spelling", ["1e-31", "0e31", "0E+100", "1e-20000", "0e" + "9" * 10_000])
def test_exponent_beyond_30_is_refused(field, spelling):
    """No client writes a larger exponent, and not every reader of a list has numbers that small."""
    with pytest.raises(BadRequest, match=f"`{field}`"):
        spelled(**{field: spelling})


@pytest.mark.parametrize(
    "spelling", ["0", "-0", "1.50", "1E3", "12e-1", "9007199254740992.0", "0." + "3" * 40, "1e-30", "0E+030"]
)
def test_numbers_keep_their_spelling(spelling):
    assert spelled(final_score=spelling).final_score == spelling


def test_very_long_number_is_shown_shortened():
    """A list shouldn't show ten thousand digits."""
    assert spelled(final_score="0." + "3" * 10_000).final_score == repr(1 / 3)
    assert spelled(final_score="0." + "0" * 300 + "1").final_score == "0.0"


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (None, None),
        (0, 0),
        (2202.0, 2202),
        (2.0**53 - 1, 2**53 - 1),
        (2.0**53, None),
        (2**64 - 1, 2**64 - 1),
        (2**64, None),
        (-1, None),
        (-1.0, None),
        (1.5, None),
        (True, None),
    ],
)
def test_seed_is_an_unsigned_64_bit_number_or_absent(seed, expected):
    """Any other value counts as absent."""
    assert header(seed=seed).seed == expected


@pytest.mark.parametrize("seed", [0, 5, 2**53 + 1, 2**64 - 1])
def test_seed_may_be_text(seed):
    """Some clients have only doubles as numbers. The stored number is the same."""
    assert header(seed=str(seed)).seed == seed


@pytest.mark.parametrize("seed", OTHER_SPELLINGS)
def test_seed_as_text_has_one_spelling(seed):
    """Another spelling counts as absent, in the checker too."""
    assert header(seed=seed).seed is None


def test_last_of_doubled_keys_counts():
    """Every decoder of the game reads them in this way."""
    body = b'{"mode": 5, "draw_mode": "DrawOne", "final_score": 1, "time_seconds": 1, "recorded_at": "2026-01-01",'
    fields = msgspec.json.decode(body + b'"mode": "Zen", "final_score": 2}', type=Fields)
    read = read_header(fields)
    assert (read.mode, read.final_score) == ("Zen", "2")


@pytest.mark.parametrize(
    ("mode", "score", "seconds", "expected"),
    [
        ("Classic", 700.9, 95.1, (700, 96)),
        ("Classic", 0.9, 0, (None, None)),
        ("Classic", -5, 0.1, (None, 1)),
        ("Classic", 2**53, 2**53, (I32, None)),
        ("Classic", I32, I32, (I32, I32)),
        ("Zen", 700, 95, (None, None)),
        ({"Difficulty": "Hard"}, 700, 95, (None, None)),
    ],
)
def test_classic_replay_gives_a_rounded_score_and_time(mode, score, seconds, expected):
    """Scores are rounded down and times up. Replays of other modes don't count for the leaderboard."""
    assert tuple(header(mode=mode, final_score=score, time_seconds=seconds).bests) == expected


@given(
    st.lists(st.sampled_from(["a", "\ud800", "\udbff", "\udc00", "\\", "\\u", "ud800", '"', "😀", "\0"])).map("".join)
)
def test_half_surrogate_pairs_are_readable(text):
    """Each field of such a replay ends where it did."""
    assert header(x=text, mode="Zen", **{text: 1}) == header(mode="Zen")
    assert len(decodable(json.dumps(text).encode())) == len(json.dumps(text))


@pytest.mark.parametrize("value", ['"{}"', '"urn:uuid:{}"', '"{{{}}}"', '"\\u0035d2c8f8e-6f0a-4c53-9b1e-3a7d0c9e4b21"'])
def test_replay_with_a_game_id_has_a_digest(value):
    """The digest covers the bytes, not their meaning."""
    game = value.format("5D2C8F8E-6f0a-4c53-9b1e-3a7d0c9e4b21")
    body = json.dumps(GOOD).replace("}", f', "game_id": {game}}}').encode()
    assert read_replay(body).digest == sha256(body).digest()
    assert read_replay(body + b" ").digest == sha256(body + b" ").digest()


@pytest.mark.parametrize("value", ['"x"', "1", "null", "[]", '"\\ud800"', '"5d2c8f8e-6f0a-4c53-9b1e-3a7d0c9e4b2"'])
def test_replay_without_a_game_id_has_no_digest(value):
    """An id that is absent or isn't a UUID raises no error."""
    assert read_replay(json.dumps(GOOD).replace("}", f', "game_id": {value}}}').encode()).digest is None
    assert read_replay(json.dumps(GOOD).encode()).digest is None
