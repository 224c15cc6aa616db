"""`solisync import-original`: everything is imported once, and no existing row is lost (docs/moving-in.md)."""

import json
import signal
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.access.tokens import Tokens
from solisync.client import TokenPair
from solisync.errors import DatabaseError, FatalError
from tests.harness import original_server as there
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD, PATIENCE, SECRET
from tests.harness.entry_points import SOLISYNC
from tests.harness.housekeeping import make_housekeeping
from tests.harness.original_server import ANN, BEN, CEM
from tests.harness.payloads import IMAGES, NIL, U64
from tests.harness.postgres import connect, lock_waiters, run_sql
from tests.harness.processes import run
from tests.harness.service import refused
from tests.harness.tokens import access_token

NOW = datetime.now(UTC).replace(microsecond=0)
TOKENS = Tokens(SECRET.encode())
ENDS = (NOW + timedelta(days=29)).isoformat()
EVERYTHING = (  # what an import may write
    *("users", "sync_states", "leaderboard", "avatars", "replays", "refresh_tokens", "replay_usage", "imported"),
    *("analytics_names", "analytics_events"),
)


def everything(dsn):
    """Return all rows of those tables."""
    return {table: sorted(run_sql(dsn, f"SELECT {table}::text FROM {table}")) for table in EVERYTHING}


@pytest.fixture
def file(place):
    """An original server's file with two players who have everything, and one who has nothing."""
    path = there.create(place / "original server?.db")
    full = there.payload(
        BEN,
        stats__games_won=7,
        stats__games_lost=99,  # not what a merge would make of it
        stats__fastest_win_seconds=U64,
        stats__zz_newer={"a": 1e300},
        achievements=[
            {"id": "z", "unlocked": True, "unlock_date": "2026-11-01T00:00:00.5Z", "reward_granted": False},
            {"id": "a", "unlocked": False, "unlock_date": None, "reward_granted": False, "zz": "\ud83d"},
        ],
        progress__unlocked_backgrounds=[5, 0],
    )
    return there.write(
        path,
        users=[
            there.user(avatar_url=f"/avatars/{ANN}.png", leaderboard_opt_in=1),
            there.user(BEN, "ben", password_hash=there.LONG_HASH, leaderboard_opt_in=1),
            there.user(CEM, "cem"),
        ],
        sync_state=[there.progress(there.payload(stats__games_won=3)), there.progress(full)],
        leaderboard=[
            there.entry(recorded_at="2026-11-20T12:00:00.5+00:00"),
            there.entry(BEN, display_name="Ben"),
            there.entry(CEM, display_name="Cem", best_score=9000),
        ],
        replays=[there.replay(1), there.replay(2, BEN, "2026-11-20T13:00:00+00:00")],
        refresh_tokens=[there.token(1, expires_at=ENDS), there.token(2, BEN, expires_at=ENDS)],
        analytics_events=[there.event(1), there.event(2, None), there.event(3, CEM.upper(), payload='{"a" : 1}')],
        daily_challenges=[there.challenge("2026-11-20")],
    )


@pytest.fixture
def avatars(place):
    """The directory of that server's avatars."""
    directory = place / "avatars"
    directory.mkdir()
    (directory / f"{ANN}.png").write_bytes(IMAGES["png"])
    return directory


def session_of(jti, user_id):
    """Return the refresh token that the original server has issued with this record."""
    expires = int(datetime.fromisoformat(ENDS).timestamp())
    return TOKENS._sign({"sub": user_id, "exp": expires, "kind": "refresh", "jti": jti})


def counts(done):
    """Return the table at the end without empty lines: {table: (read, imported, present, refused, warnings)}."""
    lines = {record.pop("table"): tuple(record.values()) for record in done.records if "read" in record}
    return {table: line for table, line in lines.items() if any(line)}


def problems(done):
    return [(each["problem"], each["table"], each["id"], each["reason"]) for each in done.records if "problem" in each]


@pytest.fixture
def bring(administrate, file):
    """Import the file, or another one."""

    async def bring(*words, path=file, **options):
        return await administrate("import-original", path, "--json", *words, **options)

    return bring


async def test_everything_is_imported(server, bring, avatars):
    """Each table has its counts, without warnings."""
    done = await bring("--avatars", avatars)
    assert problems(done) == []
    assert counts(done) == {
        "users": (3, 3, 0, 0, 0),
        "sync_state": (2, 2, 0, 0, 0),
        "leaderboard": (3, 3, 0, 0, 0),
        "avatars": (1, 1, 0, 0, 0),
        "replays": (2, 2, 0, 0, 0),
        "refresh_tokens": (2, 2, 0, 0, 0),
        "analytics_events": (3, 3, 0, 0, 0),
        "daily_challenges": (1, 0, 1, 0, 0),
    }
    assert server.sql("SELECT id, created_at FROM users WHERE username = 'ann'") == [
        (ANN, datetime(2026, 5, 19, 10, 11, 12, 123457, UTC))
    ]
    names = "LEFT JOIN analytics_names AS names ON names.id = name_id"
    assert server.sql(f"SELECT name, payload FROM analytics_events AS event {names} ORDER BY event.id") == [
        ("ann", "{}"),
        (None, "{}"),
        (CEM, '{"a" : 1}'),
    ]


async def test_players_keep_passwords_and_sessions(server, bring, avatars, file):
    """The old password logs in, and tokens of the old server are valid."""
    await bring("--avatars", avatars)
    ann, ben = server.client(), server.client()
    await ann.login("ann", there.PASSWORD)
    assert (await ann.me()).avatar_url == f"/avatars/{ANN}.png"
    assert (await server.ask("GET", f"/avatars/{ANN}.png", bearer=ann.tokens.access_token)).content == IMAGES["png"]
    await ben.login("ben", there.LONG_PASSWORD)
    await ben.login("ben", there.LONG_PASSWORD[:72])
    assert await refused(ben.login("ben", there.LONG_PASSWORD[:71])) == (401, "invalid credentials")
    old = server.client()
    old.tokens = TokenPair(access_token(BEN, NOW), session_of(there.token(2)["jti"], BEN))
    assert (await old.me()).id == BEN
    spent = old.tokens
    await old.refresh()
    old.tokens, kept = spent, old.tokens
    assert await refused(old.refresh()) == (401, "unauthorized")
    old.tokens = kept
    assert there.token(2)["jti"] in [session.id for session in await old.sessions()]


async def test_pull_returns_what_the_original_server_returned(server, bring, file):
    """Even fields that a merge would have changed are the same. Players who never pushed get the defaults."""
    await bring()
    for user_id, name, password in ((ANN, "ann", there.PASSWORD), (BEN, "ben", there.LONG_PASSWORD)):
        client = server.client()
        await client.login(name, password)
        answer = await server.ask("GET", "/api/sync/pull", bearer=client.tokens.access_token)
        pulled = json.loads(answer.content)  # halves of surrogate pairs included
        (row,) = [row for row in there.read(file, "sync_state") if row["user_id"] == user_id]
        expected = {part: json.loads(row[f"{part}_json"]) for part in ("stats", "achievements", "progress")}
        expected |= {"user_id": user_id, "last_modified": row["last_modified"].replace("+00:00", "Z")}
        for record in expected["achievements"]:
            record["unlock_date"] = record["unlock_date"] and record["unlock_date"].replace(".5Z", ".500000Z")
        assert pulled["merged"] == expected
    client = server.client()
    await client.login("cem", there.PASSWORD)
    assert (await client.pull()).merged.stats.games_played == 0


async def test_imported_progress_accepts_pushes(server, bring):
    """The form of the game's id doesn't matter, and another import keeps the push."""
    await bring()
    client = server.client()
    await client.login("ann", there.PASSWORD)
    pulled = (await client.pull()).merged
    more = replace(pulled, user_id=NIL, stats=replace(pulled.stats, games_won=5, games_played=9))
    assert (await client.push(more)).merged.stats.games_won == 5
    assert counts(await bring())["sync_state"] == (2, 0, 2, 0, 0)
    pulled = (await client.pull()).merged
    assert (pulled.user_id, pulled.stats.games_won) == (NIL, 5)


async def test_imported_replays_are_unchanged(server, bring, file):
    """Bytes, ids and order are the same, and the replays count towards the quota."""
    await bring()
    rows = {row["id"]: row for row in there.read(file, "replays")}
    for replay_id, row in rows.items():
        assert (await server.ask("GET", f"/api/replays/{replay_id}")).content.decode() == row["replay_json"]
    recent = (await server.ask("GET", "/api/replays/recent")).json
    assert [entry["id"] for entry in recent] == sorted(rows, key=lambda key: rows[key]["received_at"], reverse=True)
    assert (recent[0]["username"], recent[0]["deal"]) == ("ben", str(U64))
    assert recent[0]["received_at"] == "2026-11-20T13:00:00Z"
    client = server.client()
    await client.login("ann", there.PASSWORD)
    await client.upload_replay(there.replay()["replay_json"].encode())
    assert server.sql("SELECT used_bytes FROM replay_usage ORDER BY 1") == [(4096,), (8192,)]


async def test_imported_leaderboard_equals_the_original(server, bring):
    """Rows and order are equal. Players who aren't on it there are hidden here, with their bests."""
    await bring()
    client = server.client()
    await client.login("cem", there.PASSWORD)
    shown = [(each.display_name, each.best_score, each.best_time_secs) for each in await client.leaderboard()]
    assert shown == [("Ben", 7200, 95), ("Ann", 7200, 95)]
    await client.opt_in("Cem")
    assert (await client.leaderboard())[0].best_score == 9000


async def test_imported_players_count_on_the_days_of_their_registrations(server, bring, open_database, reactor):
    """Housekeeping counts days again that it counted before the import."""
    housekeeping = make_housekeeping(open_database(), reactor)
    count = "SELECT sum(count)::int FROM daily_numbers WHERE name IN ('registrations', 'replays')"
    await housekeeping.prune()
    assert server.sql(count) == [(0,)]
    await bring("--dry-run")
    await housekeeping.prune()
    assert server.sql(count) == [(0,)]
    await bring()
    server.sql("UPDATE users SET created_at = now() - interval '9 days'")
    server.sql("UPDATE replays SET received_at = now() - interval '8 days'")
    await housekeeping.prune()
    assert server.sql(count) == [(5,)]


async def test_second_import_does_nothing(server, bring, avatars):
    """Everything is present, and no row differs."""
    first = await bring("--avatars", avatars)
    before = everything(server.dsn)
    again = await bring("--avatars", avatars)
    assert everything(server.dsn) == before
    assert problems(again) == []
    assert counts(again) == {
        table: (read, 0, read, refused, warnings) for table, (read, _, _, refused, warnings) in counts(first).items()
    }


async def test_dry_run_prints_the_same_and_does_nothing(server, bring, avatars, file):
    """The test runs it before the import, after it, and with bad rows."""
    there.write(file, users=[there.user("x", "dee")], replays=[there.replay(9, replay_json="{")])
    for _ in range(2):
        before = everything(server.dsn)
        dry = await bring("--avatars", avatars, "--dry-run", fails=FatalError)
        assert everything(server.dsn) == before
        assert await bring("--avatars", avatars, fails=FatalError) == dry


async def test_import_does_not_bring_back_what_ended_here(server, bring, avatars, file):
    """Spent tokens, deleted replays and deleted players stay gone, with what these players did there later."""
    await bring("--avatars", avatars)
    ann, ben = server.client(), server.client()
    ann.tokens = TokenPair("", session_of(there.token(1)["jti"], ANN))
    await ann.refresh()
    await ann.delete_replay(there.replay(1)["id"])
    await ben.login("ben", there.LONG_PASSWORD)
    await ben.delete_account()
    there.write(
        file,
        replays=[there.replay(7, BEN), there.replay(8)],
        analytics_events=[there.event(7, "ben"), there.event(8, BEN), there.event(9, "ann")],
        refresh_tokens=[there.token(7, BEN, ENDS)],
    )
    done = await bring("--avatars", avatars)
    assert problems(done) == []
    assert counts(done) == {
        "users": (3, 0, 3, 0, 0),
        "sync_state": (2, 0, 2, 0, 0),
        "leaderboard": (3, 0, 3, 0, 0),
        "avatars": (1, 0, 1, 0, 0),
        "replays": (4, 1, 3, 0, 0),
        "refresh_tokens": (3, 0, 3, 0, 0),
        "analytics_events": (6, 3, 3, 0, 0),
        "daily_challenges": (1, 0, 1, 0, 0),
    }
    assert server.sql("SELECT username FROM users ORDER BY 1") == [("ann",), ("cem",)]
    assert server.sql("SELECT id FROM replays") == [(there.replay(8)["id"],)]
    assert server.sql("SELECT count(*) FROM analytics_names WHERE name IN ('ben', %s)", (BEN,)) == [(0,)]
    assert len(await ann.sessions()) == 1


async def test_removed_avatar_is_not_imported_again(server, bring, avatars):
    """The player had the avatar from the import, or had replaced it first; a dry run reports the same."""
    await bring("--avatars", avatars)
    ann = server.client()
    await ann.login("ann", there.PASSWORD)
    for image in (None, IMAGES["gif89a"]):
        if image is not None:
            await ann.upload_avatar(image, "image/gif")
        await ann.delete_avatar()
        for words in (["--dry-run"], []):
            done = await bring("--avatars", avatars, *words)
            assert (problems(done), counts(done)["avatars"]) == ([], (1, 0, 1, 0, 0))
        assert (await ann.me()).avatar_url is None
        assert server.sql("SELECT count(*) FROM avatars") == [(0,)]


async def test_missing_avatar_is_imported_later(server, bring, avatars, file):
    """The earlier import was interrupted, or lacked the file."""
    there.change(file, "UPDATE users SET avatar_url = ? WHERE id = ?", f"/avatars/{BEN}.gif", BEN)
    await bring()
    done = await bring("--avatars", avatars, "--allow-refused")
    assert counts(done)["avatars"] == (2, 1, 0, 1, 0)
    (avatars / f"{BEN}.gif").write_bytes(IMAGES["gif89a"])
    assert counts(await bring("--avatars", avatars))["avatars"] == (2, 1, 1, 0, 0)
    assert server.sql("SELECT username FROM users JOIN avatars ON id = user_id ORDER BY 1") == [("ann",), ("ben",)]


async def test_token_spent_there_ends_its_session_here(server, bring, file):
    """A session whose token was spent here continues here."""
    await bring()
    ann = server.client()
    ann.tokens = TokenPair("", session_of(there.token(1)["jti"], ANN))
    await ann.refresh()
    there.change(file, "DELETE FROM refresh_tokens")
    there.write(file, refresh_tokens=[there.token(3, BEN, ENDS)])
    dry, done = await bring("--dry-run"), await bring()
    assert dry == done
    assert {"spent": 1} in done.records
    assert server.sql("SELECT jti FROM refresh_tokens WHERE user_id = %s", (BEN,)) == [(there.token(3)["jti"],)]
    assert await ann.refresh()


async def test_import_keeps_what_players_changed_here(server, bring, avatars, file):
    """A file changes no password, avatar, display name or opt-in."""
    await bring("--avatars", avatars)
    ann = server.client()
    await ann.login("ann", there.PASSWORD)
    await ann.change_password(there.PASSWORD, PASSWORD)
    await ann.upload_avatar(IMAGES["gif89a"], "image/gif")
    await ann.opt_in("Anna")
    hash_there = there.HASH.replace("$2b$", "$2y$")
    there.change(file, "UPDATE users SET password_hash = ?, leaderboard_opt_in = 0", hash_there)
    there.change(file, "UPDATE leaderboard SET display_name = 'X', best_score = 8000, recorded_at = ?", there.TIME)
    done = await bring("--avatars", avatars)
    assert [each[:3] for each in problems(done)] == [
        ("warning", "users", BEN),  # ann's is not the one that was imported
        ("warning", "users", CEM),
        ("warning", "leaderboard", ANN),
        ("warning", "leaderboard", BEN),
    ]
    assert counts(done)["leaderboard"] == (3, 2, 1, 0, 2)
    await ann.login("ann", PASSWORD)
    assert (await ann.me()).avatar_url == f"/avatars/{ANN}.gif"
    assert [(each.display_name, each.best_score) for each in await ann.leaderboard()] == [("Ben", 8000), ("Anna", 8000)]


async def test_progress_made_on_both_sides_is_merged(server, bring, file):
    """The rules of a push apply. Afterwards the known states of sessions don't count."""
    await bring()
    client = server.client()
    await client.login("ann", there.PASSWORD)
    pulled = (await client.pull()).merged
    await client.push(replace(pulled, stats=replace(pulled.stats, games_won=10, games_played=20)))
    assert server.sql("SELECT count(*) FROM known_states") == [(1,)]
    there.write(file, sync_state=[there.progress(there.payload(stats__games_won=4, stats__lifetime_score=900))])
    assert counts(await bring())["sync_state"] == (2, 1, 1, 0, 0)
    assert server.sql("SELECT count(*) FROM known_states") == [(0,)]
    stats = (await client.pull()).merged.stats
    assert (stats.games_won, stats.lifetime_score) == (10, 900)


async def test_player_whose_username_is_taken_is_refused(server, bring, file):
    """All rows of that player are left out. The player here notices nothing, and the others are imported."""
    here = await server.player("ann")
    me = await here.me()
    done = await bring("--allow-refused")
    theirs = "belongs to a refused player"
    assert problems(done) == [
        ("refused", "users", ANN, "another player is called ann here"),
        ("refused", "sync_state", ANN, theirs),
        ("refused", "leaderboard", ANN, theirs),
        ("warning", "avatars", None, "use --avatars DIR to import the avatars from there: 1"),
        ("refused", "replays", there.replay(1)["id"], theirs),
        ("refused", "refresh_tokens", there.token(1)["jti"], theirs),
        ("refused", "analytics_events", there.event(1)["id"], theirs),
    ]
    assert counts(done)["users"] == (3, 2, 0, 1, 0)
    assert await here.me() == me
    assert server.sql("SELECT count(*) FROM replays WHERE user_id = %s", (me.id,)) == [(0,)]


async def test_existing_account_is_merged(server, bring, file):
    """The id decides, whatever its origin; the account keeps the username that it has here."""
    server.sql("INSERT INTO users (id, username, password_hash, created_at) VALUES (%s, 'anna', 'none', now())", (ANN,))
    await server.player("ann")
    assert counts(await bring())["users"] == (3, 2, 1, 0, 0)
    assert server.sql("SELECT username, password_hash, password_cut FROM users WHERE id = %s", (ANN,)) == [
        ("anna", "none", None)
    ]
    assert server.sql("SELECT name FROM analytics_names WHERE name LIKE 'ann%%'") == [("anna",)]


async def test_bad_rows_do_not_affect_others(server, bring, avatars, file):
    """Each is named by table and id, with a reason. The status shows that some rows were refused."""
    there.write(
        file,
        users=[there.user("d" * 8, "dee"), there.user(there.DEE, "d e e", avatar_url=f"/avatars/{there.DEE}.png")],
        replays=[there.replay(3, replay_json="nonsense"), there.replay(4, received_at="+99999-01-01T00:00:00Z"),
                 there.replay(5, there.DEE), there.replay(6, "nobody")],
        refresh_tokens=[there.token(3, expires_at="1"), there.token(4, "nobody")],
        analytics_events=[there.event(4, event_type="É"), there.event(5, "d e e")],
        daily_challenges=[there.challenge("2026-11-21") | {"seed": 5}],
    )  # fmt: skip
    there.change(file, "UPDATE sync_state SET stats_json = '{' WHERE user_id = ?", ANN)
    there.change(file, "UPDATE users SET avatar_url = ? WHERE id = ?", f"/avatars/{BEN}.gif", BEN)
    there.change(file, "UPDATE users SET username = CAST(x'ff6f6f6f' AS TEXT) WHERE id = ?", CEM)
    done = await bring("--avatars", avatars, fails=FatalError)
    theirs = "belongs to a refused player"
    assert [(kind, table, row_id) for kind, table, row_id, why in problems(done) if theirs == why] == [
        ("refused", "leaderboard", CEM),
        ("refused", "avatars", there.DEE),
        ("refused", "replays", there.replay(5)["id"]),
        ("refused", "analytics_events", there.event(3)["id"]),
        ("refused", "analytics_events", there.event(5)["id"]),
    ]
    others = [(f"{kind} {table} {row_id}", why) for kind, table, row_id, why in problems(done) if theirs != why]
    for (name, why), (expected, beginning) in zip(
        others,
        [
            (f"refused users {CEM}", "username is not text"),
            (f"refused users {'d' * 8}", "id is not a UUID in lower case"),
            (f"refused users {there.DEE}", "username may only contain letters, digits and underscores"),
            (f"refused sync_state {ANN}", "stats_json is not JSON"),
            (f"refused avatars {BEN}", f"there is no file {BEN}.gif"),
            (f"refused replays {there.replay(3)['id']}", "replay_json is not valid JSON: "),
            (f"refused replays {there.replay(4)['id']}", "received_at is not a time of the years 1 to 9999"),
            (f"warning replays {there.replay(6)['id']}", "belongs to no player"),
            (f"refused refresh_tokens {there.token(3)['jti']}", "expires_at is not a time of the years 1 to 9999"),
            (f"warning refresh_tokens {there.token(4)['jti']}", "belongs to no player"),
            (f"refused analytics_events {there.event(4)['id']}", "Expected `str` matching regex"),
            ("warning daily_challenges 2026-11-21", "the seed there is 5, here "),
        ],
        strict=True,
    ):
        assert name == expected
        assert why.startswith(beginning)
    assert counts(done) == {
        "users": (5, 2, 0, 3, 0),
        "sync_state": (2, 1, 0, 1, 0),
        "leaderboard": (3, 2, 0, 1, 0),
        "avatars": (3, 1, 0, 2, 0),
        "replays": (6, 2, 0, 3, 1),
        "refresh_tokens": (4, 2, 0, 1, 1),
        "analytics_events": (5, 2, 0, 3, 0),
        "daily_challenges": (2, 0, 1, 0, 1),
    }


@pytest.mark.parametrize(("level", "wal"), [*((level, False) for level in there.LEVELS), (max(there.LEVELS), True)])
async def test_files_of_every_schema_level_are_imported(server, administrate, place, level, wal):
    """The file stays unchanged, to the byte."""
    path = there.create(place / "old.db", level, wal=wal)
    rows = {"users": [there.user(avatar_url=f"/avatars/{ANN}.png")], "sync_state": [there.progress(there.payload())]}
    if level >= 2:
        rows["replays"] = [there.replay()]
    if level >= 3:
        rows["refresh_tokens"] = [there.token()]
    if level >= 6:
        rows["analytics_events"] = [there.event()]
    before = there.write(path, **rows).read_bytes()
    done = await administrate("import-original", path, "--json")
    assert [each[1] for each in problems(done)] == (["avatars"] if level >= 5 else [])
    assert {table: line[1] for table, line in counts(done).items() if line[1]} == dict.fromkeys(rows, 1)
    assert path.read_bytes() == before


@pytest.mark.parametrize("wal", [True, False], ids=["wal", "journal"])
async def test_original_server_may_run_during_the_import(server, administrate, place, wal):
    """Commits that aren't in the file yet are imported, and that server can write right afterwards."""
    path = there.create(place / "live.db", wal=wal)
    with there.open_by_server(path) as connection:
        connection.execute("INSERT INTO users (id, username, password_hash, created_at) VALUES (?, 'ann', ?, ?)",
                           (ANN, there.HASH, there.TIME))  # fmt: skip
        connection.commit()
        connection.execute("INSERT INTO users (id, username, password_hash, created_at) VALUES (?, 'ben', ?, ?)",
                           (BEN, there.HASH, there.TIME))  # fmt: skip
        assert counts(await administrate("import-original", path, "--json")) == {"users": (1, 1, 0, 0, 0)}
        connection.commit()
        assert counts(await administrate("import-original", path, "--json")) == {"users": (2, 1, 1, 0, 0)}


async def test_file_of_another_kind_is_refused_in_one_line(server, administrate, place):
    absent, text, other, empty = (place / name for name in ("absent.db", "text.db", "other.db", "empty.db"))
    text.write_text("users\n" * 100)
    empty.touch()
    there.change(other, "CREATE TABLE users (id TEXT)")
    strange = there.create(place / "strange.db", 1)
    there.change(strange, "DROP TABLE users")
    with pytest.raises(FileNotFoundError):
        await administrate("import-original", absent)
    for path, why in (
        (text, "is not an SQLite database"),
        (empty, "is not an SQLite database"),
        (other, "users lacks created_at, password_hash, username"),
        (strange, "has no table users"),
    ):
        with pytest.raises(FatalError, match=why):
            await administrate("import-original", path)
    broken = there.write(there.create(place / "broken.db", wal=False), users=[there.user()])
    content = bytearray(broken.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    broken.write_bytes(content)
    with pytest.raises(FatalError, match="malformed"):
        await administrate("import-original", broken)
    with pytest.raises(FatalError, match="is not a directory"):
        await administrate("import-original", broken, "--avatars", place / "absent")


async def test_import_upgrades_the_schema_but_a_dry_run_does_not(reactor, empty_database, bring):
    """A dry run names the missing migrations in one line."""
    with pytest.raises(FatalError, match="run solisync --migrate"):
        await bring("--dry-run", DATABASE_URL=empty_database)
    assert run_sql(empty_database, "SELECT count(*) FROM pg_class WHERE relname = 'users'") == [(0,)]
    assert counts(await bring(DATABASE_URL=empty_database))["users"] == (3, 3, 0, 0, 0)


async def test_import_command_prints_text_and_sets_its_status(migrated_database, file):
    """Standard error has one line."""
    there.write(file, users=[there.user("x", "x\x1b[2J")])
    for words, status, errors in (
        (["--dry-run"], 1, ["solisync: 1 row was refused; to exit with status 0 anyway, use --allow-refused"]),
        (["--allow-refused"], 0, []),
    ):
        done = run(*SOLISYNC, "import-original", file, *words, DATABASE_URL=migrated_database)
        assert (done.status, done.err) == (status, errors)
        assert done.out[0] == "refused: users x: username may only contain letters, digits and underscores"
        assert [line.split() for line in done.out if line.startswith("users")] == [["users", "4", "3", "0", "1", "0"]]


async def test_failure_of_the_database_ends_the_import_with_its_reason(migrated_database, bring):
    refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$no room$$; END'"
    run_sql(migrated_database, f"{refuse}; CREATE TRIGGER r BEFORE INSERT ON replays EXECUTE FUNCTION refuse()")
    with pytest.raises(DatabaseError, match="no room"):
        await bring(DATABASE_URL=migrated_database)


async def test_interrupted_import_continues_next_time(reactor, migrated_database, launch, file):
    """Ctrl-C ends it with status 1, after the current transaction."""
    words = [*SOLISYNC, "import-original", file]
    with closing(connect(migrated_database)) as connection:
        connection.autocommit = False
        connection.cursor().execute("LOCK TABLE leaderboard IN SHARE MODE")
        running = launch(*words, DATABASE_URL=migrated_database)
        await until(reactor, lambda: lock_waiters(migrated_database))
        running.popen.send_signal(signal.SIGINT)
        await deferLater(reactor, 0.2)
        connection.rollback()
    assert await deferToThread(running.popen.wait, PATIENCE) == 1
    assert running.log == "interrupted\n"
    assert run_sql(migrated_database, "SELECT count(*) FROM leaderboard") == [(3,)]
    assert run_sql(migrated_database, "SELECT count(*) FROM replays") == [(0,)]
    assert launch(*words, DATABASE_URL=migrated_database).popen.wait(PATIENCE) == 0
    assert run_sql(migrated_database, "SELECT count(*) FROM replays") == [(2,)]


async def test_players_may_play_during_the_import(server, bring, file, no_deadlocks):
    """The result has every acknowledged push, and everything from the file."""
    await bring()
    clients = {"ann": server.client(), "ben": server.client()}
    await clients["ann"].login("ann", there.PASSWORD)
    await clients["ben"].login("ben", there.LONG_PASSWORD)

    async def play(client):
        pulled = (await client.pull()).merged
        for won in range(100, 130):
            await client.push(replace(pulled, stats=replace(pulled.stats, games_won=won, games_played=won)))
            if won % 5 == 0:
                await client.refresh()

    async def import_often():
        for xp in range(1, 11):
            rows = [there.progress(there.payload(user_id, progress__total_xp=xp)) for user_id in (ANN, BEN)]
            there.write(file, sync_state=rows)
            await bring()

    await gatherResults([Deferred.fromCoroutine(each) for each in (*map(play, clients.values()), import_often())])
    for client in clients.values():
        merged = (await client.pull()).merged
        assert (merged.stats.games_won, merged.progress.total_xp) == (129, 10)


async def test_import_progress_is_shown_on_terminals_or_with_the_option(bring, administrate, server, file):
    """Standard output doesn't contain it."""
    done = await administrate("import-original", file, "--progress")
    assert done.progress[0] == "copying the file: 100 %"
    assert (await administrate("import-original", file)).progress == []
