"""A PgBouncer in transaction mode between the service and its database."""

import os
import pwd
import re
import socket
from contextlib import closing

import pytest
from psycopg2.extensions import make_dsn, parse_dsn
from twisted.internet.threads import deferToThread

from solisync.postgres.migrate import load_migrations
from solisync.postgres.server_user import unprivileged_user
from tests.harness.concurrency import wait_for
from tests.harness.constants import SECRET
from tests.harness.entry_points import SOLISYNC
from tests.harness.postgres import run_sql
from tests.harness.processes import free_port, run

SETTINGS = """
[databases]
* = host='{host}' port={port} user=solisync
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
"""


@pytest.fixture
def pooled(launch, place, empty_database):
    """The DSN of an empty database behind a PgBouncer."""
    direct, port = parse_dsn(empty_database), free_port()
    file = place / "pgbouncer.ini"
    file.write_text(SETTINGS.format(host=direct["host"], port=direct["port"], listen=port))
    user = ("--user", pwd.getpwuid(unprivileged_user()[0]).pw_name) if os.geteuid() == 0 else ()
    launch("pgbouncer", *user, file)
    wait_for(lambda: answers(port))
    return make_dsn(host="127.0.0.1", port=port, user="solisync", dbname=direct["dbname"])


def answers(port):
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.limit(120)
@pytest.mark.needs("pgbouncer")
async def test_the_service_works_behind_pgbouncer(serve, pooled, empty_database):
    """It migrates, plays a whole session and leaves no lock for others to wait for; the doctor sees what is between."""
    node = await serve(pooled, SOLISYNC_PREPARED_STATEMENTS="off")
    assert node.log.count("applying") == len(load_migrations())
    played = await deferToThread(run, *SOLISYNC, "--smoke", node.url)
    assert (played.status, played.err) == (0, [])
    again = await serve(pooled, SOLISYNC_PREPARED_STATEMENTS="off")
    locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted"
    wait_for(lambda: run_sql(empty_database, locks) == [])
    past = await deferToThread(run, *SOLISYNC, "--migrate", DATABASE_URL=empty_database)
    assert (past.status, past.err) == (0, [])
    assert (node.stop(), again.stop()) == (0, 0)
    for prepared, level in (("on", "note"), ("off", "ok")):
        environ = {"JWT_SECRET": SECRET, "DATABASE_URL": pooled, "SOLISYNC_PREPARED_STATEMENTS": prepared}
        seen = await deferToThread(run, *SOLISYNC, "doctor", **environ)
        assert any(re.match(rf"{level}\s+pooler ", line) for line in seen.out), seen.out
