"""What rows of an original server's database become (docs/moving-in.md)."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given

from solisync.moving_in import rows as original
from solisync.moving_in.rows import Fate, Unusable
from solisync.moving_in.sqlite_values import Unread
from solisync.rules.challenge import daily_challenge
from solisync.rules.documents import read_stored
from solisync.rules.leaderboard import BEST_MAX, Bests
from tests.harness import original_server as there
from tests.harness.payloads import IMAGES, NOW, U32, U64
from tests.harness.strategies import costly, payloads
from tests.rules.documents import document as decoded

LATER = NOW + timedelta(days=1)
NO_HASH = "password_hash is not a bcrypt hash of a cost from 4 to 14"
NO_TIME = "created_at is not a time of the years 1 to 9999 in RFC 3339"
HALF = "\udcff"  # what SQLite's text that is no UTF-8 comes as


documents = payloads.map(decoded)


def reason(read, row):
    with pytest.raises(Unusable) as caught:
        read(row)
    return str(caught.value)


def test_a_player_keeps_id_name_hash_and_date():
    """The date may have nanoseconds and any offset."""
    user = original.read_user(there.user(created_at="2026-05-19T12:11:12.123456789+02:00"))
    assert user == (there.ANN, "ann", there.HASH, datetime(2026, 5, 19, 10, 11, 12, 123457, UTC))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"id": None}, "id is missing"),
        ({"id": there.ANN.upper()}, "id is not a UUID in lower case"),
        ({"id": 7}, "id is not text"),
        ({"username": "an"}, "username must be 3-32 characters"),
        ({"username": "ann!"}, "username may only contain letters, digits and underscores"),
        ({"username": " ann"}, "username begins or ends with white space"),
        ({"username": f"ann{HALF}"}, "username is not text"),
        ({"username": "an\0n"}, "username is not text"),
        ({"username": b"ann"}, "username is not text"),
        ({"password_hash": "secret"}, NO_HASH),
        ({"password_hash": there.HASH.replace("$04$", "$31$")}, NO_HASH),
        ({"password_hash": there.HASH[:28] + "A" + there.HASH[29:]}, NO_HASH),
        ({"created_at": "yesterday"}, NO_TIME),
        ({"created_at": "2026-05-19T10:11:12"}, NO_TIME),
        ({"created_at": "+12026-05-19T10:11:12Z"}, NO_TIME),
        ({"created_at": "0001-01-01T00:00:00+01:00"}, NO_TIME),
        ({"created_at": "2026-05-19T10:11:12+0100"}, NO_TIME),
    ],
)
def test_a_player_without_a_usable_row(changes, why):
    """What is wrong is said, by the name of the column."""
    assert reason(original.read_user, there.user(**changes)) == why


@pytest.mark.parametrize(
    ("exists", "noted", "name_taken", "fate"),
    [
        (False, False, False, Fate.NEW),
        (False, False, True, Fate.TAKEN),
        (True, False, True, Fate.PRESENT),
        (True, True, False, Fate.PRESENT),
        (False, True, False, Fate.DELETED),
        (False, True, True, Fate.DELETED),
    ],
)
def test_the_fate_of_a_player(exists, noted, name_taken, fate):
    """Who is here stays, who was deleted here stays gone, and a name belongs to who has it."""
    assert original.fate(exists=exists, noted=noted, name_taken=name_taken) is fate


@costly(60)
@given(documents)
def test_progress_becomes_what_was_pulled_there(document):
    """Field by field, unknown ones included; nothing is merged, derived, sorted or bounded."""
    payload = json.loads(document._replace(unknown_fields=document.unknown_fields._replace(payload={})).encode())
    payload["user_id"] = there.ANN
    read = original.read_progress(there.progress(payload))
    assert json.loads(original.merged(None, read.document, LATER)) == payload


def test_progress_beyond_the_bounds_is_taken():
    """Lists of any length."""
    payload = there.payload(progress__unlocked_backgrounds=list(range(5_000)), stats__games_lost=77)
    assert original.read_progress(there.progress(payload)).document.payload.stats.games_lost == 77


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"user_id": "ann"}, "user_id is not a UUID in lower case"),
        ({"stats_json": "{"}, "stats_json is not JSON"),
        ({"stats_json": ""}, "stats_json is not JSON"),
        ({"stats_json": '{}, "user_id": 1'}, "stats_json is not JSON"),
        ({"progress_json": "[" * 100_000}, "progress_json is not JSON"),
        ({"achievements_json": None}, "achievements_json is missing"),
        ({"achievements_json": "{}"}, "Expected `array`, got `object` - at `$.achievements`"),
        ({"stats_json": "{}"}, "Object missing required field `games_played` - at `$.stats`"),
        ({"last_modified": "now"}, "last_modified is not a time of the years 1 to 9999 in RFC 3339"),
    ],
)
def test_progress_that_is_none(changes, why):
    """What is wrong is said, by the path of the field."""
    assert reason(original.read_progress, there.progress(there.payload()) | changes) == why


def test_numbers_of_progress_have_their_ranges():
    """As in a push."""
    for name, value in (("games_played", U32 + 1), ("lifetime_score", U64 + 1), ("games_won", -1), ("games_won", "1")):
        row = there.progress(there.payload(**{f"stats__{name}": value}))
        assert f"{name}`" in reason(original.read_progress, row)
    big = there.progress(there.payload(stats__lifetime_score=U64, stats__games_played=95.0))
    stats = original.read_progress(big).document.payload.stats
    assert (stats.lifetime_score, stats.games_played) == (U64, 95)


@costly(60)
@given(documents, documents)
def test_merging_again_changes_nothing(here, document):
    """After the first time there is nothing to store, in whatever state the document is."""
    stored = original.merged(here.encode(), document, NOW)
    assert original.merged(stored or here.encode(), document, LATER) is None


@costly(60)
@given(documents, documents)
def test_what_is_here_is_kept_where_neither_is_better(here, document):
    """The form of the id, and fields of a newer game."""
    stored = original.merged(here.encode(), document, NOW)
    both = here if stored is None else read_stored(stored)
    assert both.payload.user_id == here.payload.user_id
    assert both.payload.stats.games_won >= max(here.payload.stats.games_won, document.payload.stats.games_won)
    for name, value in here.unknown_fields.payload.items():
        assert bytes(both.unknown_fields.payload[name]) == bytes(value)


def test_a_tie_of_wins_keeps_the_average_that_is_here():
    """Where a push would decide, the import doesn't."""
    here, document = (
        original.read_progress(
            there.progress(there.payload(stats__games_won=3, stats__avg_time_seconds=seconds))
        ).document
        for seconds in (50, 60)
    )
    stored = original.merged(here.encode(), document, NOW)
    assert read_stored(stored or here.encode()).payload.stats.avg_time_seconds == 50


def read_entry(newest_classic=None, **changes):
    return original.read_entry({"username": "ann", **there.entry(**changes)}, newest_classic, LATER)


@pytest.mark.parametrize(
    ("score", "seconds", "bests", "warnings"),
    [
        (7200, 95, Bests(7200, 95), 0),
        (None, None, Bests(None, None), 0),
        (BEST_MAX, BEST_MAX, Bests(BEST_MAX, BEST_MAX), 0),
        (0, 0, Bests(None, None), 2),
        (-(2**63), -(2**63), Bests(None, None), 2),
        (-5, -2, Bests(None, None), 2),  # as that server shows 2^64 - 2
        ("many", 1.5, Bests(None, None), 2),
        (U32, 2**31, Bests(BEST_MAX, None), 2),
        (BEST_MAX + 1, BEST_MAX + 1, Bests(BEST_MAX, None), 2),
        (2**63 - 1, 2**63 - 1, Bests(BEST_MAX, None), 2),
        (1, 2**63 - 1, Bests(1, None), 1),
        ("7", b"7", Bests(None, None), 2),
    ],
)
def test_an_entry_has_what_counts_here(score, seconds, bests, warnings):
    """0 is none; what clients can't read is capped or left out, with a warning for each."""
    entry, reasons = read_entry(best_score=score, best_time_secs=seconds)
    assert (entry.bests, len(reasons)) == (bests, warnings)


def test_an_entry_is_shown_if_its_player_wants_it():
    """1, and nothing else."""
    for value, visible in ((1, True), (0, False), (None, False), ("1", False), (2, False)):
        assert read_entry(leaderboard_opt_in=value)[0].visible is visible


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"display_name": ""}, "display_name", "ann"),
        ({"display_name": " "}, "display_name", "ann"),
        ({"display_name": b"Ann"}, "display_name", "ann"),
        ({"display_name": "A\0nn"}, "display_name", "ann"),
        ({"display_name": "\x1b[2J"}, "display_name", "ann"),
        ({"display_name": "x" * 33}, "display_name", "ann"),
        ({"display_name": "a\u202eb"}, "display_name", "ann"),
        ({"display_name": f"a{HALF}"}, "display_name", "ann"),
        ({"display_name": Unread.TOO_LARGE}, "display_name", "ann"),
        ({"recorded_at": "2026-11-19"}, "recorded_at", datetime(2026, 11, 19, tzinfo=UTC)),
        ({"recorded_at": 7, "newest_classic": NOW}, "recorded_at", NOW),
        ({"recorded_at": None, "newest_classic": NOW}, "recorded_at", NOW),
        ({"recorded_at": "9999-12-31T23:59:60Z", "newest_classic": NOW}, "recorded_at", NOW),
        ({"recorded_at": b"\0"}, "recorded_at", LATER),
        ({"recorded_at": "soon"}, "recorded_at", LATER),
        ({"recorded_at": "9999-12-31T23:59:59Z"}, "recorded_at", LATER),
    ],
)
def test_an_entry_is_not_lost_over_a_cell(changes, field, value):
    """Another value counts, and one warning names the column."""
    entry, (warning,) = read_entry(**changes)
    assert getattr(entry, field) == value
    assert warning.startswith(f"{field} ")


def test_entry_of_a_day_to_come_has_the_time_of_the_import():
    assert read_entry(recorded_at="2999-01-01")[0].recorded_at == LATER


def test_the_newest_classic_replay_is_that_of_the_player():
    """Other modes don't count, nor replays without a time."""
    rows = [
        there.replay(1, received_at="2026-11-20T12:00:00+00:00"),
        there.replay(2, received_at="2026-11-20T13:00:00.5+00:00"),
        there.replay(3, received_at="2026-11-20T14:00:00+02:00"),
        there.replay(4, received_at="2026-11-21T14:00:00+00:00", mode="Zen"),
        there.replay(5, received_at="soon"),
        there.replay(6, there.BEN, received_at="2026-11-22T12:00:00+00:00"),
    ]
    assert original.newest_classics(rows) == {
        there.ANN: datetime(2026, 11, 20, 13, 0, 0, 500_000, UTC),
        there.BEN: datetime(2026, 11, 22, 12, tzinfo=UTC),
    }


def test_a_replay_is_its_text():
    """The columns beside it count for nothing: what is shown is read out of the text, as of an upload."""
    row = there.replay(seed=-1, mode="nonsense", final_score=None)
    replay, warnings = original.read_stored_replay(row, LATER)
    assert warnings == []
    assert replay.replay.raw.decode() == row["replay_json"]
    assert (replay.replay.header.mode, replay.replay.header.seed) == ("Classic", U64)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"id": "x"}, "id is not a UUID in lower case"),
        ({"replay_json": "{"}, "replay_json is not valid JSON: Input data was truncated"),
        ({"replay_json": "{}"}, "replay lacks `mode`"),
        ({"replay_json": '{"mode": "Classic", "draw_mode": 3}'}, "`draw_mode` of a replay must be text"),
        ({"replay_json": Unread.TOO_LARGE}, "replay_json is too large"),
        ({"replay_json": '"' + "x" * 2**20 + '"'}, "replay_json is larger than 1 MiB"),
        ({"received_at": ""}, "received_at is not a time of the years 1 to 9999 in RFC 3339"),
    ],
)
def test_a_replay_that_is_none(changes, why):
    """By the rules of an upload."""
    assert reason(lambda row: original.read_stored_replay(row, LATER), there.replay(**changes)) == why


def test_a_token_is_known_by_its_record():
    """Its id, its player, its end."""
    row = there.token()
    assert original.read_token(row) == (row["jti"], there.ANN, datetime(2026, 12, 20, 12, tzinfo=UTC))
    assert reason(original.read_token, there.token(jti="1")) == "jti is not a UUID in lower case"


def test_an_event_is_as_it_was_reported():
    """The payload to the byte, an id in any spelling, a name as names are stored."""
    row = there.event(id=there.ANN.upper(), user_id=f" {there.ANN.upper()} ", payload='{"a" : 1e2}')
    session_id, name, event, received_at = original.read_event(row)
    assert (session_id, name, event.id, bytes(event.payload)) == ("s", there.ANN, there.ANN, b'{"a" : 1e2}')
    assert (event.event_type, event.client_time, received_at) == ("game_won", NOW, NOW)
    assert original.read_event(there.event(user_id=None)).name is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"id": "x"}, "`id` must be a UUID"),
        ({"event_type": "Game Won"}, "Expected `str` matching regex"),
        ({"payload": "{"}, "payload is not JSON"),
        ({"payload": '"' + "x" * 4_095 + '"'}, "`payload` must be at most 4096 bytes of JSON"),
        ({"payload": r'"\ud800"'}, "event must not contain U+0000"),
        ({"session_id": ""}, "session_id must have 1 to 64 characters"),
        ({"user_id": "x" * 65}, "user_id must have 1 to 64 characters"),
        ({"client_time": "now"}, "Invalid RFC3339 encoded datetime"),
        ({"client_time": "2026-11-22T12:00:01Z"}, "`client_time` is more than 24 hours ahead"),
        ({"received_at": "now"}, "received_at is not a time"),
    ],
)
def test_an_event_that_is_none(changes, why):
    """By the rules of a report, at the time when it was received."""
    assert reason(original.read_event, there.event(**changes)).startswith(why)


def test_an_event_of_the_last_day_that_there_is():
    """An event may be 24 hours ahead of its server, also where that is no date any more."""
    last = {"client_time": "9999-12-31T23:59:59Z", "received_at": "9999-12-31T23:59:59Z"}
    assert original.read_event(there.event(**last)).event.client_time == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    early = last | {"received_at": "9999-12-30T23:59:58Z"}
    assert reason(original.read_event, there.event(**early)) == "`client_time` is more than 24 hours ahead"


def test_an_avatar_is_named_by_its_player():
    """Of the four types, and by nobody else's id: no path leads out of the directory."""
    for extension in ("jpg", "png", "webp", "gif"):
        row = there.user(avatar_url=f"/avatars/{there.ANN}.{extension}")
        assert original.avatar_extension(row) == extension
    for url in ("", "/avatars/../x.png", f"/avatars/{there.BEN}.png", f"/avatars/{there.ANN}.svg", 7):
        assert reason(original.avatar_extension, there.user(avatar_url=url)).startswith("avatar_url is n")


def test_an_image_begins_as_its_name_says():
    """As in an upload."""
    original.check_image("png", IMAGES["png"])
    assert (
        reason(lambda image: original.check_image("png", image), IMAGES["svg"])
        == "avatar does not begin like image/png"
    )


def test_a_challenge_is_compared():
    """By its seed, signed or not, and by what its goal tells."""
    day = "2026-11-20"
    assert original.challenge_difference(there.challenge(day)) is None
    assert original.challenge_difference(there.challenge(day) | {"goal_json": "{}"}) is None
    seed = daily_challenge(datetime(2026, 11, 20, tzinfo=UTC).date()).seed
    assert original.challenge_difference(there.challenge(day) | {"seed": 1}) == f"the seed there is 1, here {seed}"
    wrong = {"goal_json": '{"target_score": 1}'}
    assert original.challenge_difference(there.challenge(day) | wrong) == "target_score there is 1, here None"
    words = {"goal_json": '{"description": "Win in under 3 minutes"}'}
    assert original.challenge_difference(there.challenge(day) | words) is None
    goals = ({"goal_json": text} for text in ("[", "[]", None, r'{"x": "\ud800"}'))
    for changes in ({"date": "today"}, {"seed": "x"}, {"seed": HALF}, *goals):
        assert original.challenge_difference(there.challenge(day) | changes)
