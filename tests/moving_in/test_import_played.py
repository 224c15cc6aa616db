"""`solisync import-original` accepts what the original server really writes (docs/moving-in.md "Invalid values")."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from solisync.access.tokens import Tokens
from solisync.client import ApiError, TokenPair
from solisync.web.shared_cache import CoalescingCache
from tests.harness import original_server as there
from tests.harness.constants import SECRET
from tests.harness.entry_points import SOLISYNC
from tests.harness.original_play import AVATARS, OriginalServer, played_answers, played_file
from tests.harness.processes import run

BEST_MAX = 2**31 - 1
DATE = "recorded_at is a date: its 00:00 UTC is used"
NO_TIME = "recorded_at is not a time: the time of the player's newest Classic replay is used"
NO_SCORE = "best_score is not a whole number above 0: it is left out"
CAPPED = f"best_score is above {BEST_MAX}: {BEST_MAX} is used"
NO_BEST_TIME = f"best_time_secs is not a whole number from 1 to {BEST_MAX}: it is left out"
CONTROLS = "display_name must not contain control characters; the username is shown instead"
RECEIVED = "recorded_at is not a date or time: lists show the date of receipt"


def moment(text):
    return msgspec.convert(text, datetime)


def timed(part):
    """Return a part of a payload whose time has as many digits as both servers have."""
    return part | {"last_modified": moment(part["last_modified"])}


@pytest.fixture(autouse=True)
def lists_are_new(monkeypatch):
    """Forget the lists that the service cached in the test before."""
    monkeypatch.setattr(CoalescingCache, "seconds", 0.0)


@pytest.fixture
def original(place):
    """An original server without players."""
    return OriginalServer(place)


@pytest.fixture
def moved(server, administrate, original):
    """Import the file, which refuses nothing; return the warnings as (table, id, reason)."""

    async def moved():
        done = await administrate("import-original", original.path, "--json")
        problems = [each for each in done.records if "problem" in each]
        assert {each["problem"] for each in problems} <= {"warning"}
        return [(each["table"], each["id"], each["reason"]) for each in problems]

    return moved


async def listed(server):
    """Return the leaderboard, as (name, score, seconds, time)."""
    viewer = await server.player("viewer")
    return [
        (entry.display_name, entry.best_score, entry.best_time_secs, entry.recorded_at)
        for entry in await viewer.leaderboard()
    ]


async def bests(server):
    return {name: (score, seconds) for name, score, seconds, _ in await listed(server)}


async def signed_in(server, player):
    """Return a client with this player's password; a busy machine may take long to verify its hash."""
    while True:
        client = server.client()
        try:
            await client.login(player["username"], player["password"])
        except ApiError as error:
            if error.status != 503:
                raise
        else:
            return client


async def test_played_file_is_imported_with_warnings_only(server, place):
    """Each odd cell is a warning, and all players continue as on that server."""
    path, answers = played_file(place), played_answers()
    ends = (datetime.now(UTC) + timedelta(days=9)).replace(microsecond=0)
    there.change(path, "UPDATE refresh_tokens SET expires_at = ?", ends.isoformat())  # they end a month after playing
    done = run(*SOLISYNC, "import-original", path, "--avatars", AVATARS, "--json", DATABASE_URL=server.dsn)
    assert (done.status, done.err) == (0, [])
    records = [json.loads(line) for line in done.out]
    ids = [player["id"] for player in answers["players"]]
    soon = answers["players"][1]["replays"][0]
    assert {(each["problem"], each["table"], each["id"], each["reason"]) for each in records if "problem" in each} == {
        *(("warning", "leaderboard", ids[number], DATE) for number in (0, 2, 4, 6)),
        ("warning", "leaderboard", ids[1], NO_TIME),
        ("warning", "leaderboard", ids[2], NO_SCORE),
        ("warning", "leaderboard", ids[5], CONTROLS),
        ("warning", "leaderboard", ids[7], CAPPED),
        ("warning", "leaderboard", ids[7], NO_BEST_TIME),
        ("warning", "replays", soon, RECEIVED),
    }
    assert {each["table"]: (each["read"], each["imported"]) for each in records if each.get("imported")} == {
        "users": (8, 8),
        "sync_state": (7, 7),
        "leaderboard": (8, 8),
        "avatars": (2, 2),
        "replays": (7, 7),
        "refresh_tokens": (8, 8),
    }
    rows = {row["id"]: row for row in there.read(path, "replays")}
    pushed = {row["user_id"]: row["last_modified"] for row in there.read(path, "sync_state")}
    for player in answers["players"]:
        client = await signed_in(server, player)
        bearer = client.tokens.access_token
        assert (await server.ask("GET", "/api/me", bearer=bearer)).json == player["me"]
        if player["me"]["avatar_url"]:
            shown = await server.ask("GET", player["me"]["avatar_url"], bearer=bearer)
            assert shown.content == (AVATARS / player["me"]["avatar_url"].rpartition("/")[2]).read_bytes()
        pulled, expected = (await server.ask("GET", "/api/sync/pull", bearer=bearer)).json, player["pull"]
        assert pulled["conflicts"] == expected["conflicts"]
        merged, expected = pulled["merged"], expected["merged"]
        if expected["stats"]["fastest_win_seconds"] == 2**64 - 2:  # a rounded 2^64 - 1, which means never
            expected["stats"]["fastest_win_seconds"] += 1
        assert merged["progress"].pop("daily_won_later") == []  # the original server has no such field
        for part in ("stats", "progress"):
            assert timed(merged[part]) == timed(expected[part])
        for part in ("user_id", "achievements"):
            assert merged[part] == expected[part]
        if player["id"] in pushed:
            assert moment(merged["last_modified"]) == moment(pushed[player["id"]])
        for replay_id in player["replays"]:
            body = (await server.ask("GET", f"/api/replays/{replay_id}")).content
            assert body.decode() == rows[replay_id]["replay_json"]
            assert json.loads(body) == player["bodies"][replay_id]
        (record,) = [row for row in there.read(path, "refresh_tokens") if row["user_id"] == player["id"]]
        claims = {"sub": player["id"], "exp": int(ends.timestamp()), "kind": "refresh", "jti": record["jti"]}
        client.tokens = TokenPair("", Tokens(SECRET.encode())._sign(claims))
        await client.refresh()
    day = datetime(2026, 11, 20, tzinfo=UTC)
    entries = {
        row["user_id"]: moment(row["recorded_at"])
        for row in there.read(path, "leaderboard")
        if "T" in row["recorded_at"]
    }
    assert await listed(server) == [
        ("Seven", BEST_MAX, None, entries[ids[7]]),
        ("One", 9999, 157, moment(rows[soon]["received_at"])),
        ("Six", 620, 885, day),
        ("Näme 0", 605, 157, day),
        ("Three", 460, 148, entries[ids[3]]),
        ("Two", None, 635, day),
        ("played_5", None, None, entries[ids[5]]),
    ]
    shown = (await server.ask("GET", "/api/replays/recent")).json
    assert [entry["id"] for entry in shown] == sorted(rows, key=lambda key: rows[key]["received_at"], reverse=True)
    assert [entry["recorded_at"] for entry in shown if entry["id"] == soon] == ["2026-11-22"]


async def test_invalid_time_of_a_win_is_replaced(server, original, moved):
    """An entry gets the time of the player's newest Classic replay, a replay the date on which it was received."""
    texts = ("soon", "", "2026-13-45", "20261120", "2026-11-20T10:11:12", "a\0\u202e", "x" * 1_000)
    players = [original.join(f"ann_{number}", f"Ann {number}") for number in range(len(texts))]
    newest = moment(original.time())
    odd, plain = [], []
    for player, text in zip(players, texts, strict=True):
        odd.append(original.upload(player, "2026-11-01T10:00:00+00:00", recorded_at=text))
        plain.append(
            original.upload(player, newest.isoformat(), final_score=1, recorded_at="2026-11-20T10:11:12+01:00")
        )
        original.upload(player, mode="Zen", recorded_at="2026-11-21")
    before = {row["id"]: row["replay_json"] for row in there.read(original.path, "replays")}
    assert sorted(await moved()) == sorted(
        [("leaderboard", player, NO_TIME) for player in players] + [("replays", replay, RECEIVED) for replay in odd]
    )
    assert {entry[1:] for entry in await listed(server)} == {(605, 157, newest)}
    assert dict(server.sql("SELECT id::text, body FROM replays")) == before
    dates = dict(server.sql("SELECT id::text, recorded_at FROM replays"))
    assert {dates[replay] for replay in odd} == {"2026-11-01"}
    assert {dates[replay] for replay in plain} == {"2026-11-20T10:11:12+01:00"}


@pytest.mark.parametrize("field", ["mode", "draw_mode"])
async def test_unknown_mode_is_kept(server, original, moved, field):
    """Lists show the mode if it is a name, and pages show the replay. The replay is unchanged."""
    modes = {"Spider": "Spider", "Free_cell2": "Free_cell2"}
    modes |= dict.fromkeys(("", "Classic ", "\x1b[2J", "\u202e", "x" * 65, "../..", "a\0"), "Unknown")
    ann = original.join("ann", "Ann")
    original.push(ann, 605, 157)
    replays = {original.upload(ann, **{field: mode, "final_score": 3}): mode for mode in modes}
    warnings = await moved()
    assert [each[:2] for each in warnings] == [("replays", replay) for replay in replays]
    assert all(reason.startswith(f"{field} is not one of ") for *_, reason in warnings)
    recent = (await server.ask("GET", "/api/replays/recent")).json
    assert {entry["id"]: entry[field] for entry in recent} == {replay: modes[replays[replay]] for replay in replays}
    for replay, mode in replays.items():
        assert (await server.ask("GET", f"/api/replays/{replay}")).json[field] == mode
        assert (await server.ask("GET", f"/replays/{replay}")).status == 200
    assert await bests(server) == {"Ann": (605, 157)}


async def test_numbers_beyond_all_bounds_are_shown_at_the_bound(server, original, moved):
    """The replay itself is unchanged."""
    ann = original.join("ann")
    sent = [(2**63 - 1, -2), (-(2**63), 2**63 - 1)]
    replays = [original.upload(ann, final_score=score, time_seconds=seconds) for score, seconds in sent]
    assert [each[:2] for each in await moved()] == [("replays", replay) for replay in replays for _ in range(2)]
    recent = {entry["id"]: entry for entry in (await server.ask("GET", "/api/replays/recent")).json}
    shown = [(recent[replay]["final_score"], recent[replay]["time_seconds"]) for replay in replays]
    assert shown == [(2**53, 0), (-(2**53), 2**53)]
    bodies = [(await server.ask("GET", f"/api/replays/{replay}")).json for replay in replays]
    assert [(body["final_score"], body["time_seconds"]) for body in bodies] == sent


async def test_repeated_replay_keeps_both_ids(server, original, moved):
    """Links to either id may have been shared."""
    ann = original.join("ann")
    replays = [original.upload(ann) for _ in range(2)]
    assert await moved() == []
    bodies = [(await server.ask("GET", f"/api/replays/{replay}")).content for replay in replays]
    assert bodies[0] == bodies[1]
    assert {entry["id"] for entry in (await server.ask("GET", "/api/replays/recent")).json} == {*replays}


async def test_entry_of_a_player_without_opt_in_is_hidden(server, original, moved):
    """The entry keeps its bests, even with odd values; opting in shows it again."""
    ann = original.join("ann", "A\u202enn")
    original.upload(ann, time_seconds=-(2**63))
    original.opt_out(ann)
    warnings = [reason for table, row, reason in await moved() if (table, row) == ("leaderboard", ann)]
    assert warnings == [CONTROLS, NO_BEST_TIME, DATE]
    assert await bests(server) == {}
    client = server.client()
    await client.login("ann", there.PASSWORD)
    await client.opt_in("Ann")
    assert [(entry.display_name, entry.best_score) for entry in await client.leaderboard()] == [("Ann", 605)]


async def test_replay_from_the_future_counts_as_received_at_the_import(server, original, moved):
    """The next upload comes before it in the list."""
    ann = original.join("ann")
    replay = original.upload(ann, "2099-01-01T00:00:00+00:00")
    assert await moved() == [("replays", replay, "received_at is in the future: the time of the import is used")]
    client = server.client()
    await client.login("ann", there.PASSWORD)
    newer = await client.upload_replay(there.replay()["replay_json"].encode())
    shown = (await server.ask("GET", "/api/replays/recent")).json
    assert [entry["id"] for entry in shown] == [newer, replay]
    assert moment(shown[1]["received_at"]) <= datetime.now(UTC)


async def test_second_import_changes_no_odd_cell(server, original, moved):
    """Warnings and rows are the same."""
    ann, ben = original.join("ann", "A\0nn"), original.join("ben", "Ben")
    original.upload(ann, recorded_at="soon", time_seconds=-2)
    original.upload(ben, "2099-01-01T00:00:00+00:00", recorded_at="later", final_score=2**40)

    def rows():
        return [sorted(server.sql(f"SELECT {table}::text FROM {table}")) for table in ("leaderboard", "replays")]

    warnings, before = await moved(), rows()
    assert await moved() == warnings
    assert rows() == before
