"""Migrations: applied once, in order, under a lock that ends with its process."""

import subprocess
import sys
import time
from functools import partial
from unittest.mock import Mock

import pytest
from psycopg2.extensions import parse_dsn
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.logger import LogLevel, capturedLogs, formatEvent

from solisync import serving
from solisync.client import ApiError
from solisync.errors import ConnectionFailed, ConnectionLost, Declined, FatalError
from solisync.postgres import TIMES, PoolTimes, migration_lock
from solisync.postgres import migrate as runner
from solisync.postgres.migrate import Migration, load_migrations, migrate
from solisync.postgres.migration_lock import MigrationTimes
from tests.harness.concurrency import gather, until, wait_for
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.entry_points import SOLISYNC, TWISTD, start
from tests.harness.players import players
from tests.harness.postgres import run_sql
from tests.harness.processes import run
from tests.harness.service import begin, ready
from tests.harness.service import start as start_here
from tests.postgres.notes import Holding

SCRIPT = """
import sys
from pathlib import Path
from twisted.internet.defer import Deferred
from twisted.internet.task import react
from solisync.postgres.migrate import load_migrations, migrate

react(lambda reactor: Deferred.fromCoroutine(migrate(reactor, sys.argv[1], load_migrations(Path(sys.argv[2])))))
"""


@pytest.fixture
def folder(tmp_path):
    """Write migrations for the test, by name and SQL."""

    def write(**files):
        for name, sql in files.items():
            (tmp_path / f"{name.removeprefix('m')}.sql").write_text(sql)
        return tmp_path

    return write


def applied(dsn):
    return [name for (name,) in run_sql(dsn, "SELECT name FROM schema_migrations ORDER BY number")]


async def test_migrations_are_applied_once_and_in_order(reactor, empty_database, folder):
    """A second run applies only new files."""
    first = load_migrations(folder(m0001_one="CREATE TABLE one ()", m0002_two="ALTER TABLE one ADD COLUMN n int"))
    assert await migrate(reactor, empty_database, first) == ["0001_one.sql", "0002_two.sql"]
    assert await migrate(reactor, empty_database, first) == []
    second = load_migrations(folder(m0003_three="INSERT INTO one VALUES (1)"))
    assert await migrate(reactor, empty_database, second) == ["0003_three.sql"]
    assert run_sql(empty_database, "SELECT n FROM one") == [(1,)]


async def test_failed_migration_leaves_nothing(reactor, empty_database, folder):
    """Each file is one transaction; earlier files stay applied."""
    migrations = load_migrations(folder(m0001_one="CREATE TABLE one ()", m0002_two="CREATE TABLE two (); SELECT 1/0"))
    with pytest.raises(FatalError, match=r"0002_two\.sql failed: division by zero"):
        await migrate(reactor, empty_database, migrations)
    assert applied(empty_database) == ["0001_one.sql"]
    assert run_sql(empty_database, "SELECT to_regclass('two')") == [(None,)]


async def test_edited_migration_is_refused(reactor, empty_database, folder):
    """A file that was changed after it had been applied may not describe the database."""
    await migrate(reactor, empty_database, load_migrations(folder(m0001_one="CREATE TABLE one ()")))
    edited = load_migrations(folder(m0001_one="CREATE TABLE uno ()"))
    with pytest.raises(FatalError, match=r"0001_one\.sql was edited"):
        await migrate(reactor, empty_database, edited)


@pytest.mark.parametrize("name", ["m0003_gap", "m1_short", "m0001_again", "m0002_Upper", "m0002"])
def test_misnumbered_migration_is_refused(folder, name):
    """Numbers have four digits, without gaps and duplicates."""
    with pytest.raises(FatalError, match=r"the next migration is 0002_name\.sql$"):
        load_migrations(folder(m0001_one="", **{name: ""}))


def test_installation_without_migrations_is_refused(tmp_path):
    with pytest.raises(FatalError, match="incomplete"):
        load_migrations(tmp_path)


async def test_database_from_before_the_first_release_is_refused(reactor, empty_database):
    """The database isn't changed, and the error names the version that can upgrade it."""
    await migrate(reactor, empty_database, load_migrations())
    run_sql(empty_database, "DELETE FROM schema_migrations WHERE number > 40")
    with pytest.raises(FatalError, match=r"before 1\.0\.0: start solisync 1\.0\.0 on it once$"):
        await migrate(reactor, empty_database, load_migrations())
    assert len(applied(empty_database)) == 40


async def test_newer_database_only_warns(reactor, serve, empty_database):
    """During a rolling upgrade an old node must be able to restart."""
    await migrate(reactor, empty_database, load_migrations())
    run_sql(empty_database, "INSERT INTO schema_migrations (number, name, checksum) VALUES (9999, '9999_new.sql', '')")
    node = await serve(empty_database)
    assert "9999_new.sql, which this version does not know" in node.log
    node.stop()


async def test_many_nodes_start_at_the_same_time(reactor, empty_database):
    """On an empty database one of them migrates, and all of them start."""
    with capturedLogs() as events:
        nodes = await gather(5, lambda _: start_here(reactor, empty_database), range(5))
    migrations = load_migrations()
    files = [migration.name for migration in migrations]
    assert [event["name"] for event in events if "applying" in event["log_format"]] == files
    assert applied(empty_database) == [name for migration in migrations for _, name, _ in migration.records]
    for node in nodes:
        await node.service.stopService()


async def test_killed_migration_can_be_repeated(reactor, empty_database, folder):
    """kill -9 of a migrating process frees the lock and undoes the current file."""
    slow = folder(m0001_one="CREATE TABLE one ()", m0002_two="CREATE TABLE two (); SELECT pg_sleep(60)")
    kill_when(empty_database, slow, "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%%pg_sleep(60)'")
    whole = load_migrations(folder(m0002_two="CREATE TABLE two ()"))
    assert await migrate(reactor, empty_database, whole) == ["0002_two.sql"]


async def test_database_that_is_not_utf_8_is_refused(reactor, postgres):
    """Such a database can't store every name. The start changes nothing in it."""
    dsn = postgres.dsn.replace("dbname=postgres", "dbname=latin_1")
    run_sql(postgres.dsn, "CREATE DATABASE latin_1 ENCODING LATIN1 LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0")
    try:
        with pytest.raises(FatalError, match="LATIN1"):
            await migrate(reactor, dsn, load_migrations())
        assert run_sql(dsn, "SELECT to_regclass('schema_migrations')") == [(None,)]
    finally:
        run_sql(postgres.dsn, "DROP DATABASE latin_1 WITH (FORCE)")


async def test_role_without_rights_is_refused_in_one_line(reactor, empty_database):
    """The error names the role that may not create tables, without a traceback."""
    run_sql(empty_database, "CREATE ROLE stranger LOGIN")
    stranger = empty_database.replace("user=solisync", "user=stranger")
    try:
        with pytest.raises(FatalError, match=r"^solisync: role stranger .*denied for schema public: make it the owner"):
            await migrate(reactor, stranger, load_migrations())
        await migrate(reactor, empty_database, load_migrations())
        with pytest.raises(FatalError, match=r"^solisync: role stranger .*denied for table schema_migrations: make"):
            await migrate(reactor, stranger, load_migrations())
        run_sql(empty_database, "GRANT SELECT ON schema_migrations TO stranger")
        assert await migrate(reactor, stranger, load_migrations()) == []  # which creates nothing
    finally:
        run_sql(empty_database, "DROP OWNED BY stranger; DROP ROLE stranger")


async def test_start_waits_for_a_standby_to_be_promoted(reactor, postgres, migrated_database):
    """The log names the reason; a promotion makes the node ready."""
    name = parse_dsn(migrated_database)["dbname"]
    run_sql(postgres.dsn, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with capturedLogs() as events:
        node = begin(reactor, migrated_database, quiet_seconds=0.0)
        try:
            await until(reactor, lambda: said(events, "accepts no writes: it is a standby, or set to be read-only"))
            run_sql(postgres.dsn, f"ALTER DATABASE {name} RESET default_transaction_read_only")
            await ready(reactor, node.client())
        finally:
            await node.service.stopService()


async def test_start_waits_for_a_disk_with_room(reactor, empty_database, folder):
    """The migration is applied as soon as the disk has room."""
    full = "DO $$ BEGIN IF NOT EXISTS (SELECT FROM room) THEN RAISE 'no room' USING ERRCODE = '53100'; END IF; END $$"
    run_sql(empty_database, "CREATE TABLE room ()")
    migrations = load_migrations(folder(m0001_one=full))
    with pytest.raises(Declined, match="no room"):
        await migrate(reactor, empty_database, migrations)
    run_sql(empty_database, "INSERT INTO room DEFAULT VALUES")
    assert await migrate(reactor, empty_database, migrations) == ["0001_one.sql"]


async def test_each_reason_to_wait_is_logged_once(reactor, postgres):
    """Each line names the server."""
    dsn = postgres.dsn.replace("dbname=postgres", "dbname=slow")
    with capturedLogs() as events:
        node = begin(reactor, dsn, quiet_seconds=0.0, times=PoolTimes(reconnect=0.01))
        try:
            await until(reactor, lambda: said(events, 'database "slow" does not exist'))
            run_sql(postgres.dsn, "CREATE DATABASE slow ALLOW_CONNECTIONS false")
            await until(reactor, lambda: said(events, 'database "slow" is not currently accepting connections'))
            await deferLater(reactor, 0.2)
        finally:
            await node.service.stopService()
            run_sql(postgres.dsn, "DROP DATABASE IF EXISTS slow WITH (FORCE)")
    lines = [text for event in events if "waiting for the database" in (text := formatEvent(event))]
    assert len(lines) == 2
    assert all(parse_dsn(dsn)["host"] in line for line in lines)


async def test_service_returns_503_until_its_database_exists(reactor, postgres):
    """Soon after the database has appeared, the service is ready."""
    with capturedLogs() as events:
        dsn = postgres.dsn.replace("dbname=postgres", "dbname=late")
        node = begin(reactor, dsn, handler_seconds=0.2, quiet_seconds=0.1)
        client = node.client()
        try:
            assert (await client.live()).status == "ok"
            with pytest.raises(ApiError, match="503 service unavailable"):
                await client.ready()
            await until(reactor, lambda: "waiting for the database" in str(events))
            run_sql(postgres.dsn, "CREATE DATABASE late")
            began = time.monotonic()
            await ready(reactor, client)
            assert time.monotonic() - began < 10 * TIMES.reconnect
        finally:
            await node.service.stopService()
            run_sql(postgres.dsn, "DROP DATABASE IF EXISTS late WITH (FORCE)")
    (warning,) = (event for event in events if "waiting for the database" in event["log_format"])
    assert warning["log_level"] is LogLevel.warn


def kill_when(dsn, folder, reached):
    """Start a migrating process, and kill it when this query finds a row."""
    child = subprocess.Popen([sys.executable, "-c", SCRIPT, dsn, str(folder)], cwd=ROOT)
    wait_for(lambda: run_sql(dsn, reached))
    child.kill()
    child.wait()


def said(events, text):
    """Return whether a logged message contains this text."""
    return any(text in formatEvent(event) for event in events)


LOCKED = f"SELECT pg_advisory_lock({migration_lock.LOCK_KEY})"


async def test_migration_waits_for_a_node_of_the_version_before(reactor, empty_database, folder):
    """The old node holds the same lock, for its session. The log reports the wait after a second."""
    old = Holding(empty_database, LOCKED)
    with capturedLogs() as events:
        migrating = Deferred.fromCoroutine(
            migrate(reactor, empty_database, load_migrations(folder(m0001_one="SELECT 1")), MigrationTimes(notice=0.1))
        )
        await until(reactor, lambda: said(events, "another node is migrating, waiting"))
    assert not migrating.called
    old.end()
    assert await migrating == ["0001_one.sql"]


SHORT = MigrationTimes(wait=0.1)


async def test_command_gives_up_when_another_node_migrates_for_long(reactor, empty_database):
    """The command prints this one line."""
    with Holding(empty_database, LOCKED), pytest.raises(Declined, match="another node has been migrating"):
        await migrate(reactor, empty_database, load_migrations(), SHORT)


async def test_service_waits_as_long_as_another_node_migrates(reactor, empty_database, monkeypatch):
    """A second worker that gave up would end the first one in the middle of its migration. The wait is logged once."""
    monkeypatch.setattr(serving, "migrate", partial(migrate, times=SHORT))
    old = Holding(empty_database, LOCKED)
    opened = Mock(wraps=migration_lock.open_connection)
    monkeypatch.setattr(migration_lock, "open_connection", opened)
    with capturedLogs() as events:
        node = begin(reactor, empty_database, quiet_seconds=0.0)
        try:
            await until(reactor, lambda: opened.call_count > 3)  # the node has waited again
            old.end()
            await ready(reactor, node.client())
        finally:
            await node.service.stopService()
    lines = [text for event in events if "waiting for the database" in (text := formatEvent(event))]
    assert lines == ["waiting for the database: another node has been migrating for 0.1 s"]


async def test_waiting_for_the_lock_keeps_no_connection_of_a_pooler(reactor, empty_database):
    """No transaction is open between two tries: otherwise waiting nodes could take all connections of the pooler."""
    old = Holding(empty_database, LOCKED)
    waiting = Deferred.fromCoroutine(migrate(reactor, empty_database, load_migrations()))
    seen = "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'solisync'"
    await until(reactor, lambda: run_sql(empty_database, seen))
    states = []
    while len(states) < 20:
        states += run_sql(empty_database, seen)
        await deferLater(reactor, 0.05)
    old.end()
    await waiting
    assert states.count(("idle",)) > 10, states


def test_migrate_command_reports_its_wait(launch, empty_database):
    """`solisync --migrate` would otherwise be silent for minutes while another node migrates."""
    other = Holding(empty_database, LOCKED)
    command = launch(*SOLISYNC, "--migrate", DATABASE_URL=empty_database)
    wait_for(lambda: "another node is migrating, waiting" in command.log)
    other.end()
    assert command.popen.wait(PATIENCE) == 0


async def test_migration_makes_a_node_of_the_version_before_wait(reactor, empty_database):
    """The migration leaves neither a lock nor a setting to the next client of a pooler's connection."""
    took = f"SELECT pg_try_advisory_lock({migration_lock.LOCK_KEY})"
    own = "SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY name"
    async with migration_lock.migrating(reactor, empty_database) as connection:
        before = await connection.execute(own)
        await runner.apply(reactor, connection, load_migrations())
        assert await connection.execute(own) == before
        assert run_sql(empty_database, took) == [(False,)]
    wait_for(lambda: run_sql(empty_database, took) == [(True,)])


async def test_lost_lock_ends_the_migration(reactor, empty_database, folder):
    """A node whose connection with the lock was cut must not continue beside the next one."""
    slow = load_migrations(folder(m0001_one="SELECT pg_sleep(60)"))
    migrating = Deferred.fromCoroutine(migrate(reactor, empty_database, slow))
    holders = (
        "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database"
        " WHERE datname = current_database() AND locktype = 'advisory' AND granted"
    )
    asleep = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%%pg_sleep(60)' AND state = 'active'"
    await until(reactor, lambda: run_sql(empty_database, asleep))
    run_sql(empty_database, f"SELECT pg_terminate_backend(pid) FROM ({holders}) AS holder")
    with pytest.raises(ConnectionLost):
        await migrating


async def test_requests_do_not_wait_behind_a_waiting_migration(reactor, empty_database, folder):
    """A backup holds a table for long. The service answers during the backup; the migration follows it."""
    running = await start_here(reactor, empty_database)
    try:
        ((_, _, token),) = players(empty_database, 1)
        backup = Holding(empty_database, "LOCK TABLE users IN ACCESS SHARE MODE")
        wider = Migration(9999, "9999_wider.sql", "ALTER TABLE users ADD COLUMN wider int")
        with capturedLogs() as events:
            migrating = Deferred.fromCoroutine(
                migrate(reactor, empty_database, (*load_migrations(), wider), MigrationTimes(pause=0.5))
            )
            await until(reactor, lambda: said(events, "applying 9999_wider.sql"))
            answers = []
            while not said(events, "9999_wider.sql waits for tables that are in use") or len(answers) < 50:
                answers.append(await running.ask("GET", "/api/me", bearer=token))
                await deferLater(reactor, 0.05)
        assert {answer.status for answer in answers} == {200}
        assert not migrating.called
        backup.end()
        assert await migrating == ["9999_wider.sql"]
    finally:
        await running.service.stopService()


async def test_migration_gives_up_on_a_locked_table(reactor, empty_database, folder):
    """The start ends with one line and changes nothing."""
    await migrate(reactor, empty_database, load_migrations(folder(m0001_one="CREATE TABLE one ()")))
    backup = Holding(empty_database, "LOCK TABLE one IN ACCESS SHARE MODE")
    with pytest.raises(FatalError, match=r"0002_two\.sql failed: its tables have been in use for 0\.5 s"):
        await migrate(
            reactor,
            empty_database,
            load_migrations(folder(m0002_two="DROP TABLE one")),
            MigrationTimes(pause=0.5, patience=0.5),
        )
    backup.end()
    assert applied(empty_database) == ["0001_one.sql"]


INDEX = "-- concurrently\n-- for looking up\nCREATE UNIQUE INDEX CONCURRENTLY one_n ON one (n)\n    WHERE n > 0;\n"


async def left_by_nobody(reactor, dsn, folder):
    pass


async def left_by_a_failure(reactor, dsn, folder):
    """Leave an invalid index, as two equal rows do."""
    run_sql(dsn, "INSERT INTO one VALUES (1), (1)")
    with pytest.raises(FatalError, match=r"0002_index\.sql failed: could not create unique index"):
        await migrate(reactor, dsn, load_migrations(folder))
    run_sql(dsn, "DELETE FROM one")


async def left_before_recording(reactor, dsn, folder):
    """Leave a complete index that isn't recorded."""
    run_sql(dsn, INDEX)


async def left_in_the_middle(reactor, dsn, folder):
    """Kill the process, while the server continues with its statement."""
    other = Holding(dsn, "INSERT INTO one VALUES (7)")
    kill_when(dsn, folder, "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('one_n')")
    reactor.callLater(0.5, other.end)


@pytest.mark.parametrize("left", [left_by_nobody, left_by_a_failure, left_before_recording, left_in_the_middle])
async def test_index_is_created_concurrently_after_any_earlier_attempt(reactor, empty_database, folder, left):
    """Another node waits for the lock at the same time."""
    await migrate(reactor, empty_database, load_migrations(folder(m0001_one="CREATE TABLE one (n int)")))
    migrations = load_migrations(folder(m0002_index=INDEX))
    await left(reactor, empty_database, folder())
    times = MigrationTimes(pause=0.2)
    nodes = await gatherResults(
        [Deferred.fromCoroutine(migrate(reactor, empty_database, migrations, times)) for _ in "ab"]
    )
    assert sorted(nodes) == [[], ["0002_index.sql"]]
    assert applied(empty_database) == ["0001_one.sql", "0002_index.sql"]
    valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'one_n'::regclass"
    assert run_sql(empty_database, valid) == [(True,)]


SLOW = """
    CREATE TABLE one (n int);
    INSERT INTO one VALUES (1);
    CREATE FUNCTION slow(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.5); RETURN n; END $$;
"""


async def test_index_may_take_longer_than_the_role_allows(reactor, empty_database, folder):
    """The role's limits are for a pooler; without one, the migration lifts them."""
    role = f"ROLE CURRENT_USER IN DATABASE {parse_dsn(empty_database)['dbname']}"
    run_sql(empty_database, f"ALTER {role} SET statement_timeout = '100ms'")
    index = "-- concurrently\nCREATE INDEX CONCURRENTLY one_n ON one (slow(n))"
    migrations = load_migrations(folder(m0001_one=SLOW, m0002_index=index))
    assert await migrate(reactor, empty_database, migrations) == ["0001_one.sql", "0002_index.sql"]


@pytest.mark.parametrize("sql", ["SELECT 1", "CREATE INDEX one_n ON one (n)", INDEX.partition("\n")[2] * 2])
async def test_file_outside_of_a_transaction_creates_one_index_only(reactor, empty_database, folder, sql):
    """Any other statement could not be repeated after a kill."""
    with pytest.raises(FatalError, match=r"0001_one\.sql: after '-- concurrently' comes one CREATE INDEX CONCURRENTLY"):
        await migrate(reactor, empty_database, load_migrations(folder(m0001_one=f"-- concurrently\n{sql}")))


BATCHES = """-- in batches
DO $$
BEGIN
    WHILE EXISTS (SELECT FROM one WHERE done IS NULL) LOOP
        UPDATE one SET done = 10 / n WHERE n = (SELECT max(n) FROM one WHERE done IS NULL);
        COMMIT;
    END LOOP;
END
$$;
"""


async def test_migration_in_batches_keeps_the_batches_before_a_failure(reactor, empty_database, folder):
    """The next attempt goes on after them, and the file is recorded when all are done."""
    await migrate(reactor, empty_database, load_migrations(folder(m0001_one="CREATE TABLE one (n int, done int)")))
    run_sql(empty_database, "INSERT INTO one (n) VALUES (5), (2), (0)")
    migrations = load_migrations(folder(m0002_batches=BATCHES))
    with pytest.raises(FatalError, match=r"0002_batches\.sql failed: division by zero"):
        await migrate(reactor, empty_database, migrations)
    assert run_sql(empty_database, "SELECT n, done FROM one ORDER BY n") == [(0, None), (2, 5), (5, 2)]
    assert applied(empty_database) == ["0001_one.sql"]
    run_sql(empty_database, "UPDATE one SET n = 1 WHERE n = 0")
    assert await migrate(reactor, empty_database, migrations) == ["0002_batches.sql"]
    assert run_sql(empty_database, "SELECT sum(done) FROM one") == [(17,)]


async def test_unreachable_database_is_a_failure_that_may_be_retried(reactor):
    """The error means that nothing was done."""
    with pytest.raises(ConnectionFailed, match="No such file"):
        await migrate(reactor, "host=/nonexistent", load_migrations())


@pytest.mark.parametrize("door", [SOLISYNC, TWISTD], ids=["solisync", "twistd -n"])
async def test_failing_migration_ends_the_service(launch, reactor, empty_database, door):
    """The node logs the reason in one line and exits with status 1."""
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
