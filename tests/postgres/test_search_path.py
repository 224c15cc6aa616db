"""A role that would work in another schema than public is refused: pg_dump and psql don't follow its search_path."""

import re

import pytest
from psycopg2.extensions import parse_dsn
from twisted.logger import capturedLogs

from solisync.commands.running import migrate_database
from solisync.errors import FatalError, Unavailable, WrongSchema
from solisync.postgres.migrate import load_migrations, migrate
from solisync.postgres.opening import open_connection
from solisync.settings.settings import Settings
from tests.harness.concurrency import until
from tests.harness.entry_points import SERVE
from tests.harness.original_server import create
from tests.harness.postgres import run_sql
from tests.harness.processes import run
from tests.harness.service import environment
from tests.postgres.notes import add, notes, pid, terminate

TABLES = "SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'schema_migrations'"
COMMANDS = ["status", "backup {file}", "restore {file}", "seed", "users list", "import-original {original} --dry-run"]


def lead(dsn, path):
    """Set the search_path of a database for new connections."""
    run_sql(dsn, f"ALTER DATABASE {parse_dsn(dsn)['dbname']} SET search_path = {path}")


@pytest.fixture
def misled(empty_database):
    """The DSN of a database whose search_path leads to the schema "Other"."""
    run_sql(empty_database, 'CREATE SCHEMA "Other"')
    lead(empty_database, '"Other", public')
    return empty_database


@pytest.mark.parametrize("words", COMMANDS)
async def test_commands_refuse_another_schema(administrate, misled, place, words):
    """The refusal is one line, and nothing is created."""
    create(place / "original")
    (place / "dump").write_bytes(b"PGDMP")
    file = place / ("new" if words.startswith("backup") else "dump")
    given = words.format(file=file, original=place / "original").split()
    with pytest.raises(FatalError, match=r'^solisync: role solisync works in the schema "Other" of .*[^\n]$'):
        await administrate(*given, DATABASE_URL=misled)
    assert run_sql(misled, TABLES) == []
    assert not (place / "new").exists()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_service_refuses_another_schema(misled, workers):
    """The service ends with status 1 instead of waiting."""
    done = run(*SERVE, **environment(misled, SOLISYNC_WORKERS=workers))
    assert done.status == 1
    assert any('works in the schema "Other"' in line for line in done.err)
    assert run_sql(misled, TABLES) == []


async def test_statement_in_the_refusal_is_enough(reactor, misled):
    settings = Settings.from_environ({"DATABASE_URL": misled})
    with pytest.raises(FatalError) as refused:
        await migrate_database(settings, reactor)
    run_sql(misled, re.search(r"ALTER ROLE .* = public", str(refused.value))[0])
    try:
        assert await migrate_database(settings, reactor)
        assert run_sql(misled, TABLES) == [("public",)]
    finally:
        run_sql(misled, f"ALTER ROLE solisync IN DATABASE {parse_dsn(misled)['dbname']} RESET search_path")


async def test_role_is_refused_when_a_schema_has_its_name(reactor, empty_database):
    """PostgreSQL's default search_path prefers such a schema."""
    run_sql(empty_database, "CREATE SCHEMA solisync")
    with pytest.raises(FatalError, match="works in the schema solisync of"):
        await migrate(reactor, empty_database, load_migrations())


async def test_path_that_leads_to_public_is_accepted(reactor, empty_database):
    """Schemas that don't exist, and schemas after public, change nothing."""
    run_sql(empty_database, "CREATE SCHEMA other")
    lead(empty_database, "missing, public, other")
    await migrate(reactor, empty_database, load_migrations())
    assert run_sql(empty_database, TABLES) == [("public",)]


async def test_role_without_a_schema_is_refused(reactor, empty_database):
    """A connection that only listens needs none."""
    run_sql(empty_database, "REVOKE USAGE ON SCHEMA public FROM PUBLIC; CREATE ROLE stranger LOGIN")
    stranger = empty_database.replace("user=solisync", "user=stranger")
    try:
        with pytest.raises(WrongSchema) as refused:
            await open_connection(reactor, stranger)
        (await open_connection(reactor, stranger, in_public=False)).close()
        run_sql(empty_database, re.search("GRANT .*", str(refused.value))[0])
        (await open_connection(reactor, stranger)).close()
    finally:
        run_sql(empty_database, "DROP OWNED BY stranger; DROP ROLE stranger")


async def test_doctor_finds_another_schema(administrate, misled):
    records = (await administrate("doctor", "--json", fails=FatalError, DATABASE_URL=misled)).records
    (finding,) = [record for record in records if record["subject"] == "database"]
    assert (finding["level"], 'in the schema "Other"' in finding["text"]) == ("wrong", True)
    assert finding["advice"].startswith("ALTER ROLE solisync IN DATABASE ")


@pytest.fixture
def other_notes(dsn):
    """Make a schema with notes in the database of the tests of pools, to which nothing leads yet."""
    run_sql(dsn, "CREATE SCHEMA other; CREATE TABLE other.notes (n int)")
    yield "other.notes"
    lead(dsn, "DEFAULT")
    run_sql(dsn, "DROP SCHEMA other CASCADE")


async def test_pool_uses_no_connection_to_another_schema(make_database, dsn, other_notes, reactor):
    """After a change of the search_path, new connections wait until it is undone; nothing reaches the other schema."""
    database = make_database()
    old = await database.run(pid)
    lead(dsn, "other")
    with capturedLogs() as events:
        terminate(dsn, old)
        await until(reactor, lambda: "works in the schema other" in " ".join(str(e.get("error")) for e in events))
    with pytest.raises(Unavailable):
        await database.run(add, 1)
    lead(dsn, "public")
    await database.run(add, 2)
    assert notes(dsn) == [2]
    assert run_sql(dsn, f"TABLE {other_notes}") == []
