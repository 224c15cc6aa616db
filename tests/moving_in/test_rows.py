"""Conversion of the rows of an original server's database (docs/moving-in.md)."""

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


def test_player_keeps_id_name_hash_and_date():
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
def test_unusable_player_is_refused_by_column(changes, why):
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
def test_fate_of_a_player_is_decided_by_id_and_username(exists, noted, name_taken, fate):
    """Existing players stay, deleted ones stay deleted, and a username belongs to the player who has it here."""
    assert original.fate(exists=exists, noted=noted, name_taken=name_taken) is fate


@costly(60)
@given(documents)
def test_progress_equals_what_was_pulled_there(document):
    """Unknown fields are included. Nothing is merged, derived, sorted or bounded."""
    payload = json.loads(document._replace(unknown_fields=document.unknown_fields._replace(payload={})).encode())
    payload["user_id"] = there.ANN
    read = original.read_progress(there.progress(payload))
    assert json.loads(original.merged(None, read.document, LATER)) == payload


def test_progress_beyond_the_bounds_is_accepted():
    """Lists may have any length."""
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
def test_invalid_progress_is_refused_by_field(changes, why):
    assert reason(original.read_progress, there.progress(there.payload()) | changes) == why


def test_numbers_of_progress_have_their_ranges():
    """The ranges are those of a push."""
    for name, value in (("games_played", U32 + 1), ("lifetime_score", U64 + 1), ("games_won", -1), ("games_won", "1")):
        row = there.progress(there.payload(**{f"stats__{name}": value}))
        assert f"{name}`" in reason(original.read_progress, row)
    big = there.progress(there.payload(stats__lifetime_score=U64, stats__games_played=95.0))
    stats = original.read_progress(big).document.payload.stats
    assert (stats.lifetime_score, stats.games_played) == (U64, 95)


@costly(60)
@given(documents, documents)
def test_merging_again_changes_nothing(here, document):
    """A second merge has nothing to store, in any state of the document."""
    stored = original.merged(here.encode(), document, NOW)
    assert original.merged(stored or here.encode(), document, LATER) is None


@costly(60)
@given(documents, documents)
def test_merge_keeps_existing_values_on_a_tie(here, document):
    """Examples are the form of the id, and fields of a newer game."""
    stored = original.merged(here.encode(), document, NOW)
    both = here if stored is None else read_stored(stored)
    assert both.payload.user_id == here.payload.user_id
    assert both.payload.stats.games_won >= max(here.payload.stats.games_won, document.payload.stats.games_won)
    for name, value in here.unknown_fields.payload.items():
        assert bytes(both.unknown_fields.payload[name]) == bytes(value)


def test_tie_of_wins_keeps_the_existing_average():
    """A push would decide here; the import doesn't."""
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
def test_bests_of_an_entry_are_made_valid(score, seconds, bests, warnings):
    """Zero counts as absent. A value that clients can't read is capped or dropped, each with a warning."""
    entry, reasons = read_entry(best_score=score, best_time_secs=seconds)
    assert (entry.bests, len(reasons)) == (bests, warnings)


def test_entry_is_visible_only_if_the_opt_in_is_1():
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
def test_entry_with_an_invalid_cell_is_imported(changes, field, value):
    """Another value replaces the cell, and one warning names the column."""
    entry, (warning,) = read_entry(**changes)
    assert getattr(entry, field) == value
    assert warning.startswith(f"{field} ")


def test_entry_from_the_future_has_the_time_of_the_import():
    assert read_entry(recorded_at="2999-01-01")[0].recorded_at == LATER


def test_newest_classic_replay_is_found_for_each_player():
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


def test_replay_is_read_from_its_text():
    """The columns beside it don't count. Its header is read from the text, like that of an upload."""
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
def test_invalid_replay_is_refused_like_an_upload(changes, why):
    assert reason(lambda row: original.read_stored_replay(row, LATER), there.replay(**changes)) == why


def test_token_keeps_its_id_player_and_end():
    row = there.token()
    assert original.read_token(row) == (row["jti"], there.ANN, datetime(2026, 12, 20, 12, tzinfo=UTC))
    assert reason(original.read_token, there.token(jti="1")) == "jti is not a UUID in lower case"


def test_event_is_unchanged():
    """The payload is the same to the byte; ids and names are normalised."""
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
def test_invalid_event_is_refused_like_a_report(changes, why):
    """The rules apply at the time when it was received."""
    assert reason(original.read_event, there.event(**changes)).startswith(why)


def test_event_of_the_last_possible_day_is_accepted():
    """An event may be 24 hours ahead of its server, even if that is beyond the last date."""
    last = {"client_time": "9999-12-31T23:59:59Z", "received_at": "9999-12-31T23:59:59Z"}
    assert original.read_event(there.event(**last)).event.client_time == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    early = last | {"received_at": "9999-12-30T23:59:58Z"}
    assert reason(original.read_event, there.event(**early)) == "`client_time` is more than 24 hours ahead"


def test_avatar_path_must_name_its_player_and_type():
    """No path leads out of the directory."""
    for extension in ("jpg", "png", "webp", "gif"):
        row = there.user(avatar_url=f"/avatars/{there.ANN}.{extension}")
        assert original.avatar_extension(row) == extension
    for url in ("", "/avatars/../x.png", f"/avatars/{there.BEN}.png", f"/avatars/{there.ANN}.svg", 7):
        assert reason(original.avatar_extension, there.user(avatar_url=url)).startswith("avatar_url is n")


def test_image_must_begin_like_its_type():
    """Uploads have the same rule."""
    original.check_image("png", IMAGES["png"])
    assert (
        reason(lambda image: original.check_image("png", image), IMAGES["svg"])
        == "avatar does not begin like image/png"
    )


def test_challenge_is_compared_by_seed_and_goal():
    """The seed may be signed or unsigned."""
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
