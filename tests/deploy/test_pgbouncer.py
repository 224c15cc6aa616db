"""A PgBouncer in transaction mode between the service and its database."""

import os
import pwd
import re
import time

import pytest
from psycopg2.extensions import make_dsn, parse_dsn
from twisted.internet.threads import deferToThread

from solisync.embedded.programs import unprivileged_user
from solisync.postgres.migrate import load_migrations
from tests.harness.concurrency import wait_for
from tests.harness.constants import SECRET
from tests.harness.entry_points import SOLISYNC, launch_service
from tests.harness.postgres import run_sql
from tests.harness.processes import free_port, run, wait_until_listening
from tests.harness.service import ready

SETTINGS = """
[databases]
* = host='{host}' port={port} user=solisync
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
server_login_retry = 1
"""
SETTINGS_OF_ROLE = (
    "statement_timeout = '5s'",
    "lock_timeout = '4s'",
    "idle_in_transaction_session_timeout = '10s'",
    "synchronous_commit = on",
)
PAIRS = 20
PAIR_SECONDS = 10.0


@pytest.fixture
def pooled(launch, place, empty_database):
    """The DSN of an empty database behind a PgBouncer."""
    direct, port = parse_dsn(empty_database), free_port()
    file = place / "pgbouncer.ini"
    file.write_text(SETTINGS.format(host=direct["host"], port=direct["port"], listen=port))
    user = ("--user", pwd.getpwuid(unprivileged_user()[0]).pw_name) if os.geteuid() == 0 else ()
    wait_until_listening(launch("pgbouncer", *user, file), port)
    return make_dsn(host="127.0.0.1", port=port, user="solisync", dbname=direct["dbname"])


OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@pytest.mark.needs("pgbouncer")
async def test_service_works_behind_pgbouncer(serve, pooled, empty_database):
    """The service migrates, plays a whole session and leaves no lock; the doctor detects the pooler."""
    node = await serve(pooled, SOLISYNC_PREPARED_STATEMENTS="off")
    assert node.log.count("applying") == len(load_migrations())
    assert "a pooler is in front of the database, and the role needs" in node.log
    played = await deferToThread(run, *SOLISYNC, "--smoke", node.url)
    assert (played.status, played.err) == (0, [])
    again = await serve(pooled, SOLISYNC_PREPARED_STATEMENTS="off")
    locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted"
    wait_for(lambda: run_sql(empty_database, locks) == [])
    past = await deferToThread(run, *SOLISYNC, "--migrate", DATABASE_URL=empty_database)
    assert (past.status, past.err) == (0, [])
    assert (node.stop(), again.stop()) == (0, 0)
    for prepared, given, level in (("on", (), "note"), ("off", (), "wrong"), ("off", SETTINGS_OF_ROLE, "ok")):
        for setting in given:
            run_sql(empty_database, f"ALTER DATABASE {parse_dsn(empty_database)['dbname']} SET {setting}")
        wait_for(lambda: not run_sql(empty_database, OTHERS))  # whose settings are those of before
        environ = {"JWT_SECRET": SECRET, "DATABASE_URL": pooled, "SOLISYNC_PREPARED_STATEMENTS": prepared}
        seen = await deferToThread(run, *SOLISYNC, "doctor", **environ)
        assert any(re.match(rf"{level}\s+pooler ", line) for line in seen.out), "\n".join(seen.out)


@pytest.mark.needs("pgbouncer")
async def test_log_names_the_remedy_for_prepared_statements(launch, pooled):
    """Behind a PgBouncer in transaction mode, a service that prepares statements logs how to switch that off."""
    node = launch_service(launch, pooled)
    await deferToThread(wait_for, lambda: "set SOLISYNC_PREPARED_STATEMENTS=off" in node.log)
    assert "does not fit the schema" not in node.log
    assert node.stop() == 0


@pytest.mark.limit(PAIRS * PAIR_SECONDS + 60)
@pytest.mark.needs("pgbouncer")
async def test_two_nodes_start_together_behind_pgbouncer(launch, pooled, postgres, reactor, figure):
    """The database is empty, and the pooler has two connections. One node migrates, and both are soon ready."""
    names = "SELECT name FROM schema_migrations ORDER BY number"
    expected, files = run_sql(postgres.dsn, names), load_migrations()
    slowest = 0.0
    for number in range(PAIRS):
        name = f"pair_{number}"
        run_sql(postgres.dsn, f"CREATE DATABASE {name}")
        began = time.monotonic()
        dsn = make_dsn(pooled, dbname=name)
        pair = [launch_service(launch, dsn, SOLISYNC_PREPARED_STATEMENTS="off") for _ in "ab"]
        for node in pair:
            await ready(reactor, node.client())
        slowest = max(slowest, time.monotonic() - began)
        assert slowest < PAIR_SECONDS
        assert sum(node.log.count("applying") for node in pair) == len(files)
        direct = postgres.dsn.replace("dbname=postgres", f"dbname={name}")
        assert run_sql(direct, names) == expected
        assert [node.stop() for node in pair] == [0, 0]
        run_sql(postgres.dsn, f"DROP DATABASE {name} WITH (FORCE)")
    figure(f"{PAIRS} pairs, the slowest was ready after {slowest:.1f} s")
