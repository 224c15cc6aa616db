"""`solisync status`: what there is, without touching it."""

import pytest

from solisync import __version__
from solisync.errors import FatalError
from solisync.postgres.migrate import load_migrations, migrate
from tests.harness.postgres import run_sql

LATEST = load_migrations()[-1].number


async def test_everything_is_counted(administrate, server):
    """Versions, the database, and what is in it."""
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
    }
    assert {name: status[name] for name in expected} == expected
    assert status["database_bytes"] > 1_000_000
    assert "database bytes" in await administrate("status")


@pytest.mark.parametrize("applied", [0, LATEST - 1])
async def test_an_older_schema_stays_as_it_is(administrate, empty_database, reactor, applied):
    """status tells its number and counts nothing; what needs this version's schema refuses, and says what to do."""
    if applied:
        await migrate(reactor, empty_database, load_migrations()[:applied])
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    before = run_sql(empty_database, tables)
    status = (await administrate("status", "--json", DATABASE_URL=empty_database)).json
    assert (status["schema"], "players" in status) == (applied, False)
    for words in (["users", "list"], ["users", "delete", "ann", "--yes"]):
        with pytest.raises(FatalError, match=f"is at {applied}, this version needs {LATEST}: run solisync --migrate"):
            await administrate(*words, DATABASE_URL=empty_database)
    assert run_sql(empty_database, tables) == before


async def test_a_newer_schema_is_no_hindrance(administrate, empty_database, reactor):
    """In the middle of an upgrade an old node's commands still work."""
    await migrate(reactor, empty_database, load_migrations())
    run_sql(empty_database, "INSERT INTO schema_migrations VALUES (9999, '9999_new.sql', '')")
    assert (await administrate("users", "list", "--json", DATABASE_URL=empty_database)).records == []
