"""The role with the least privileges of docs/deployment.md serves everything."""

import re

from psycopg2.extensions import parse_dsn

from solisync.commands.smoke import smoke
from tests.harness.constants import ROOT
from tests.harness.postgres import run_sql
from tests.harness.service import start

SECTION = re.compile(r"^### Least privileges$(.*?)^###", re.M | re.S)


async def test_service_needs_only_the_documented_privileges(reactor, migrated_database):
    """A whole session succeeds, and the role can't change a table."""
    text = SECTION.search((ROOT / "docs" / "deployment.md").read_text("utf-8"))[1]
    statements = "\n".join(re.findall(r"^ {4}(.*)$", text, re.M)).replace("solisync_service", "least")
    run_sql(migrated_database, statements)
    try:
        least = migrated_database.replace(f"user={parse_dsn(migrated_database)['user']}", "user=least")
        run_sql(migrated_database, "CREATE TABLE later (id int)")
        assert run_sql(least, "SELECT has_table_privilege('later', 'INSERT'), pg_has_role('solisync', 'member')") == [
            (True, False)
        ]
        node = await start(reactor, least)
        try:
            assert await smoke(node.url, reactor) == "all steps passed"
        finally:
            await node.service.stopService()
    finally:
        run_sql(migrated_database, "DROP OWNED BY least; DROP ROLE least")
