"""Migrations: applied once, in order, under a lock that no death can leave behind (contract §12)."""

import subprocess
import sys
import time

import pytest
from twisted.internet.task import deferLater
from twisted.logger import LogLevel, capturedLogs

from solisync import service
from solisync.client import ApiError
from solisync.errors import ConnectionFailed, FatalError
from solisync.postgres.database import RECONNECT_SECONDS
from solisync.postgres.migrate import load_migrations, migrate
from solisync.web import app
from tests.harness.concurrency import gather, until, wait_for
from tests.harness.constants import ROOT
from tests.harness.entry_points import SOLISYNC, TWISTD, start
from tests.harness.postgres import run_sql
from tests.harness.processes import run
from tests.harness.service import begin, ready
from tests.harness.service import start as start_here

SCRIPT = """
import sys
from pathlib import Path
from twisted.internet.defer import Deferred
from twisted.internet.task import react
from solisync.postgres.database import RECONNECT_SECONDS
from solisync.postgres.migrate import load_migrations, migrate
from solisync.web import app

react(lambda reactor: Deferred.fromCoroutine(migrate(reactor, sys.argv[1], load_migrations(Path(sys.argv[2])))))
"""


@pytest.fixture
def folder(tmp_path):
    """Write migrations of the test's own, by name and SQL."""

    def write(**files):
        for name, sql in files.items():
            (tmp_path / f"{name.removeprefix('m')}.sql").write_text(sql)
        return tmp_path

    return write


def applied(dsn):
    return [name for (name,) in run_sql(dsn, "SELECT name FROM schema_migrations ORDER BY number")]


async def test_migrations_are_applied_once_and_in_order(reactor, empty_database, folder):
    """A second run applies what has been added since, and nothing again."""
    first = load_migrations(folder(m0001_one="CREATE TABLE one ()", m0002_two="ALTER TABLE one ADD COLUMN n int"))
    assert await migrate(reactor, empty_database, first) == ["0001_one.sql", "0002_two.sql"]
    assert await migrate(reactor, empty_database, first) == []
    second = load_migrations(folder(m0003_three="INSERT INTO one VALUES (1)"))
    assert await migrate(reactor, empty_database, second) == ["0003_three.sql"]
    assert run_sql(empty_database, "SELECT n FROM one") == [(1,)]


async def test_a_migration_that_fails_leaves_nothing(reactor, empty_database, folder):
    """Each file is one transaction; what came before it stays."""
    migrations = load_migrations(folder(m0001_one="CREATE TABLE one ()", m0002_two="CREATE TABLE two (); SELECT 1/0"))
    with pytest.raises(FatalError, match=r"0002_two\.sql failed: division by zero"):
        await migrate(reactor, empty_database, migrations)
    assert applied(empty_database) == ["0001_one.sql"]
    assert run_sql(empty_database, "SELECT to_regclass('two')") == [(None,)]


async def test_an_edited_migration_is_refused(reactor, empty_database, folder):
    """A file that was changed after it had been applied can't be trusted to describe the database."""
    await migrate(reactor, empty_database, load_migrations(folder(m0001_one="CREATE TABLE one ()")))
    edited = load_migrations(folder(m0001_one="CREATE TABLE uno ()"))
    with pytest.raises(FatalError, match=r"0001_one\.sql was edited"):
        await migrate(reactor, empty_database, edited)


@pytest.mark.parametrize("name", ["m0003_gap", "m1_short", "m0001_again", "m0002_Upper", "m0002"])
def test_a_misnumbered_migration_is_refused(folder, name):
    """Numbers are four digits, without gaps and without doubles."""
    with pytest.raises(FatalError, match="numbered"):
        load_migrations(folder(m0001_one="", **{name: ""}))


def test_an_installation_without_migrations_is_refused(tmp_path):
    """Nothing to apply means that something is missing."""
    with pytest.raises(FatalError, match="incomplete"):
        load_migrations(tmp_path)


async def test_a_newer_database_only_warns(reactor, serve, empty_database):
    """During a rolling upgrade an old node must be able to restart."""
    await migrate(reactor, empty_database, load_migrations())
    run_sql(empty_database, "INSERT INTO schema_migrations (number, name, checksum) VALUES (9999, '9999_new.sql', '')")
    node = await serve(empty_database)
    assert "9999_new.sql, which this build does not know" in node.log
    node.stop()


async def test_eight_nodes_start_at_once(reactor, empty_database):
    """On an empty database one of them migrates, and all of them come up."""
    with capturedLogs() as events:
        nodes = await gather(8, lambda _: start_here(reactor, empty_database), range(8))
    files = [migration.name for migration in load_migrations()]
    assert [event["name"] for event in events if "applying" in event["log_format"]] == files
    assert applied(empty_database) == files
    for node in nodes:
        await node.service.stopService()


async def test_a_kill_in_the_middle_leaves_a_database_that_can_be_migrated(reactor, empty_database, folder):
    """kill -9 of a migrating process frees the lock and undoes the file it was at."""
    slow = folder(m0001_one="CREATE TABLE one ()", m0002_two="CREATE TABLE two (); SELECT pg_sleep(60)")
    child = subprocess.Popen([sys.executable, "-c", SCRIPT, empty_database, str(slow)], cwd=ROOT)
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%%pg_sleep(60)' AND datname = current_database()"
    wait_for(lambda: run_sql(empty_database, asleep) == [(1,)])
    child.kill()
    child.wait()
    whole = load_migrations(folder(m0002_two="CREATE TABLE two ()"))
    assert await migrate(reactor, empty_database, whole) == ["0002_two.sql"]


async def test_a_database_that_comes_late(reactor, postgres, monkeypatch):
    """Until the database is there the service answers 503; soon after it has appeared, it is ready."""
    monkeypatch.setattr(service, "QUIET_SECONDS", 0.1)
    monkeypatch.setattr(app, "HANDLER_SECONDS", 0.2)
    with capturedLogs() as events:
        node = begin(reactor, postgres.dsn.replace("dbname=postgres", "dbname=late"))
        client = node.client()
        try:
            assert (await client.live()).status == "ok"
            with pytest.raises(ApiError, match="503 service unavailable"):
                await client.ready()
            await until(reactor, lambda: "waiting for the database" in str(events), 30)
            run_sql(postgres.dsn, "CREATE DATABASE late")
            began = time.monotonic()
            await ready(reactor, client)
            assert time.monotonic() - began < 10 * RECONNECT_SECONDS
        finally:
            await node.service.stopService()
            run_sql(postgres.dsn, "DROP DATABASE IF EXISTS late WITH (FORCE)")
    (warning,) = (event for event in events if "waiting for the database" in event["log_format"])
    assert warning["log_level"] is LogLevel.warn


async def test_no_database_is_a_failure_that_may_be_tried_again(reactor):
    """The caller learns that nothing was done."""
    with pytest.raises(ConnectionFailed, match="No such file"):
        await migrate(reactor, "host=/nonexistent", load_migrations())


@pytest.mark.parametrize("door", [SOLISYNC, TWISTD], ids=["solisync", "twistd -n"])
async def test_a_failing_migration_ends_the_service(launch, reactor, empty_database, door):
    """A node whose schema can't be brought up to date says why in one line and exits with status 1."""
    await migrate(reactor, empty_database, load_migrations())
    run_sql(empty_database, "UPDATE schema_migrations SET checksum = 'x' WHERE number = 1")
    service = start(launch, *door, dsn=empty_database)
    while service.popen.poll() is None:
        await deferLater(reactor, 0.05)
    assert service.popen.returncode == 1
    assert service.log.count("was edited") == 1
    assert "Traceback" not in service.log
    refused = run(*SOLISYNC, "--migrate", DATABASE_URL=empty_database)
    assert (refused.status, len(refused.err)) == (1, 1)
