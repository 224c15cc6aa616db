"""The role with the least privileges of docs/deployment.md serves everything, and makes backups."""

import re

import pytest
from psycopg2.extensions import parse_dsn

from solisync.commands.smoke import smoke
from solisync.errors import FatalError
from solisync.postgres.migrate import load_migrations, migrate
from tests.harness.constants import ROOT, SECRET
from tests.harness.postgres import content, run_sql
from tests.harness.service import start

SECTION = re.compile(r"^### Least privileges$(.*?)^###", re.M | re.S)
BLOCK = re.compile(r"(?:^ {4}.*\n)+", re.M)
ROLE, RIGHTS = (
    block.replace("solisync_service", "least")
    for block in BLOCK.findall(SECTION.search((ROOT / "docs" / "deployment.md").read_text("utf-8"))[1])
)


def as_least(dsn):
    """Return the DSN for the role."""
    return dsn.replace(f"user={parse_dsn(dsn)['user']}", "user=least")


@pytest.fixture
def least(migrated_database):
    """The DSN of a migrated database for the role, made by the statements of the page."""
    run_sql(migrated_database, "UPDATE retention_clock SET at = 'infinity'")  # or it is behind by the age of the tests
    run_sql(migrated_database, ROLE)
    run_sql(migrated_database, RIGHTS)
    yield as_least(migrated_database)
    run_sql(migrated_database, "DROP OWNED BY least; DROP ROLE least")


async def test_service_needs_only_the_documented_privileges(reactor, least, migrated_database):
    """A whole session succeeds, and the role can't change a table."""
    run_sql(migrated_database, "CREATE TABLE later (id int GENERATED ALWAYS AS IDENTITY)")
    rights = "has_table_privilege('later', 'INSERT'), has_sequence_privilege('later_id_seq', 'SELECT')"
    assert run_sql(least, f"SELECT {rights}, pg_has_role('solisync', 'member')") == [(True, True, False)]
    node = await start(reactor, least)
    try:
        assert await smoke(node.url, reactor) == "all steps passed"
    finally:
        await node.service.stopService()


async def test_documented_role_makes_a_backup_and_serves_the_restored_database(
    reactor, administrate, least, migrated_database, empty_database, place
):
    """The owner restores into a new database. The role can serve that after its rights are granted there too."""
    node = await start(reactor, least)
    await node.player("ann")
    await node.service.stopService()
    await administrate("backup", place / "dump", DATABASE_URL=least)
    await administrate("restore", place / "dump", DATABASE_URL=empty_database)
    assert content(empty_database) == content(migrated_database)
    restored = as_least(empty_database)
    name = parse_dsn(empty_database)["dbname"]
    with pytest.raises(FatalError, match=f"role least can't use the database {name}: .*repeat the GRANTs of "):
        await migrate(reactor, restored, load_migrations())
    records = (await administrate("doctor", "--json", fails=FatalError, DATABASE_URL=restored)).records
    assert {record["subject"] for record in records if record["level"] == "wrong"} == {"backup", "rights"}
    run_sql(empty_database, RIGHTS)
    try:
        node = await start(reactor, restored)
        try:
            assert await smoke(node.url, reactor) == "all steps passed"
        finally:
            await node.service.stopService()
        await administrate("backup", place / "again", DATABASE_URL=restored)
    finally:
        run_sql(empty_database, "DROP OWNED BY least")


async def test_doctor_approves_the_documented_role(administrate, least):
    """It finds only that another role has to apply migrations, and that nothing has made a backup or run a job yet."""
    environ = {"DATABASE_URL": least, "JWT_SECRET": SECRET, "SOLISYNC_STREAMS": "10"}
    records = (await administrate("doctor", "--json", **environ)).records
    found = {record["subject"]: record["text"] for record in records if record["level"] != "ok"}
    assert found == {
        "rights": "this role may not create tables",
        "backup": "solisync backup has made none yet",
        "jobs": "housekeeping has not run yet",
    }
