"""`solisync status`: counts without changes."""

import pytest

from solisync import __version__
from solisync.errors import FatalError
from solisync.postgres.migrate import load_migrations, migrate
from tests.harness.payloads import replay
from tests.harness.postgres import run_sql

LATEST = load_migrations()[-1].number


async def test_status_counts_versions_and_rows(administrate, server):
    ann = await server.player("ann")
    await server.player("bob")
    await ann.opt_in("Ann")
    await ann.opt_out()
    status = (await administrate("status", "--json")).json
    expected = {
        "version": __version__,
        "schema": LATEST,
        "database": "configured",
        "data_dir": None,
        "database_name": "shared",
        "players": 2,
        "sessions": 2,
        "leaderboard_visible": 0,
        "leaderboard_hidden": 1,
        "avatars": 0,
        "verified": 0,
        "service_running": True,
    }
    assert {name: status[name] for name in expected} == expected
    assert status["database_bytes"] > 1_000_000
    assert "database bytes" in await administrate("status")


async def test_status_counts_queued_replays_and_verdicts(administrate, server):
    """The status has the length of each queue, the age of the oldest upload, and the number of each verdict."""
    ann = await server.player("ann")
    ids = [await ann.upload_replay(replay()) for _ in range(9)]
    server.sql("UPDATE replay_checks SET search = true WHERE replay_id = %s", (ids[1],))
    server.sql("UPDATE replay_checks SET ahead = 1000000 WHERE replay_id = %s", (ids[2],))
    server.sql("UPDATE replay_checks SET received_at = received_at - interval '1 hour' WHERE replay_id = %s", (ids[0],))
    for replay_id, status in zip(ids[3:], ["refuted"] * 3 + ["undecided"] * 2 + ["unreadable"], strict=True):
        server.sql("DELETE FROM replay_checks WHERE replay_id = %s", (replay_id,))
        server.sql(
            "INSERT INTO verdicts (replay_id, status, engine, checked_at) VALUES (%s, %s, 1, now())",
            (replay_id, status),
        )
    status = (await administrate("status", "--json")).json
    expected = {
        "replays": 9,
        "verified": 0,
        "refuted": 3,
        "undecided": 2,
        "unreadable": 1,
        "checks_waiting": 1,
        "searches_waiting": 1,
        "old_checks_waiting": 1,
    }
    assert {name: status[name] for name in expected} == expected
    assert status["longest_wait_seconds"] >= 3600


async def test_status_detects_a_service_by_its_connections(administrate, shared_nodes, migrated_database):
    """The command's own connection doesn't count."""
    status = (await administrate("status", "--json", DATABASE_URL=migrated_database)).json
    assert (status["service_running"], status["service_connections"]) == (False, 0)
    status = (await administrate("status", "--json")).json
    assert status["service_running"]
    assert status["service_connections"] >= 2


@pytest.mark.parametrize("applied", [0, *(each.number for each in load_migrations()[-2:-1])])
async def test_status_leaves_an_older_schema_unchanged(administrate, empty_database, reactor, applied):
    """The status has the schema's number and no counts. Commands that need this schema refuse with the remedy."""
    if applied:
        await migrate(reactor, empty_database, [each for each in load_migrations() if each.number <= applied])
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    before = run_sql(empty_database, tables)
    status = (await administrate("status", "--json", DATABASE_URL=empty_database)).json
    assert (status["schema"], "players" in status) == (applied, False)
    for words in (["users", "list"], ["users", "delete", "ann", "--yes"]):
        with pytest.raises(FatalError, match=f"is at {applied}, but this version needs {LATEST}: run sol"):
            await administrate(*words, DATABASE_URL=empty_database)
    assert run_sql(empty_database, tables) == before


async def test_commands_work_on_a_newer_schema(administrate, migrated_database):
    """An old node's commands work during an upgrade."""
    run_sql(migrated_database, "INSERT INTO schema_migrations VALUES (9999, '9999_new.sql', '')")
    assert (await administrate("users", "list", "--json", DATABASE_URL=migrated_database)).records == []
