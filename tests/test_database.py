"""The pool and its transactions on a real PostgreSQL: what is promised when work, connections or clients fail."""

import os
import signal
import socket
import threading
import time
from contextvars import ContextVar
from datetime import UTC, datetime

import psycopg2
import pytest
import pytest_twisted
from twisted.internet import defer
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.task import deferLater

from solisync.errors import ConnectionFailed, ConnectionLost, DatabaseError, TransactionAborted, Unavailable
from solisync.postgres import database as pool
from solisync.postgres import session as connections
from solisync.postgres import staggered as attempts
from solisync.postgres.database import Database
from solisync.postgres.dsn import each_address, each_host
from solisync.postgres.migrate import load_migrations, migrate
from solisync.postgres.session import Session
from solisync.postgres.statement import Statement
from solisync.storage import STATEMENTS
from tests.harness.postgres import connect, run_sql

PID = Statement("pid", "SELECT pg_backend_pid()")
ADD = Statement("add", "INSERT INTO notes VALUES ($1::int)")
ADD_AND_DIVIDE = Statement(
    "add_and_divide",
    "WITH added AS (INSERT INTO notes VALUES ($1::int) RETURNING n) INSERT INTO notes SELECT 1 / (n - n) FROM added",
)
SLEEP = Statement("sleep", "SELECT pg_sleep($1::float8)")
LOCK = Statement("lock_note", "SELECT n FROM notes WHERE n = $1::int FOR UPDATE")
SET = Statement("set_locally", "SELECT set_config($1::text, $2::text, true)")
SHOW = Statement("show", "SELECT current_setting($1::text)")
FAIL = Statement("fail", "SELECT fail($1::text)")
FAR = Statement("far", "VALUES ('2026-01-01'::timestamptz), ('20000-01-01'::timestamptz)")
STATEMENTS_HERE = (PID, FAR, ADD, ADD_AND_DIVIDE, SLEEP, LOCK, SET, SHOW, FAIL)

SCHEMA = """
    CREATE TABLE notes (n int);
    CREATE FUNCTION fail(code text) RETURNS void LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION USING ERRCODE = code; END $$;
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.n >= 1000) EXECUTE FUNCTION wait();
"""
SLOW = 1000  # committing a note of this number takes 0.2 s


def blockon(coroutine):
    return pytest_twisted.blockon(Deferred.fromCoroutine(coroutine))


@pytest.fixture(scope="module")
def notes_dsn(postgres):
    run_sql(postgres.dsn, "CREATE DATABASE notes")
    run_sql(postgres.dsn, "ALTER DATABASE notes SET deadlock_timeout = '20ms'")
    dsn = postgres.dsn.replace("dbname=postgres", "dbname=notes")
    run_sql(dsn, SCHEMA)
    return dsn


@pytest.fixture
def dsn(notes_dsn):
    """A database without notes."""
    run_sql(notes_dsn, "TRUNCATE notes")
    return notes_dsn


@pytest.fixture
def make_database(reactor, dsn):
    """Open pools on the test's database; at the end each must close and leave no connection behind."""
    made = []

    def make(size=1, *, to=dsn, statements=STATEMENTS_HERE):
        database = Database(reactor=reactor, size=size, statements=statements)
        database.open(to)
        made.append(database)
        return database

    yield make
    for database in made:
        blockon(database.close(1))
    wait_until(lambda: not backends(dsn))


def backends(dsn):
    """The service's connections to this database, as the server sees them: (pid, state)."""
    return run_sql(
        dsn,
        "SELECT pid, state FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'solisync' ORDER BY 1",
    )


def wait_until(done, seconds=5.0):
    """Poll without the reactor."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


async def eventually(reactor, done, seconds=5.0):
    """Poll while the reactor runs."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        await deferLater(reactor, 0.005)


def notes(dsn):
    return [n for (n,) in run_sql(dsn, "SELECT n FROM notes ORDER BY n")]


async def add(transaction, n):
    await transaction.run(ADD, n)


async def pid(transaction):
    ((number,),) = await transaction.run(PID)
    return number


async def sleep(transaction, seconds):
    await transaction.run(SLEEP, seconds)


def terminate(dsn, number):
    run_sql(dsn, "SELECT pg_terminate_backend(%s)", (number,))


def started(coroutine):
    return Deferred.fromCoroutine(coroutine)


# Transactions.


async def test_a_transaction_commits_all_of_its_work(make_database, dsn):
    """What work did is visible once transact has returned, and its result comes back."""

    async def two(transaction, *, first):
        await add(transaction, first)
        await add(transaction, first + 1)
        return "done"

    assert await make_database().transact(two, first=1) == "done"
    assert notes(dsn) == [1, 2]


@pytest.mark.parametrize("error", [Unavailable(), KeyError("bug"), CancelledError()])
async def test_any_exception_rolls_back(make_database, dsn, error):
    """Work that raises leaves nothing, and its connection is clean for the next one."""

    async def fail(transaction):
        await add(transaction, 1)
        raise error

    database = make_database()
    with pytest.raises(type(error)):
        await database.transact(fail)
    await database.autocommit(add, 2)
    assert notes(dsn) == [2]


async def test_once_is_atomic(make_database, dsn):
    """A single statement that fails half way leaves nothing."""
    with pytest.raises(DatabaseError, match="division by zero"):
        await make_database().autocommit(lambda transaction: transaction.run(ADD_AND_DIVIDE, 1))
    assert notes(dsn) == []


async def test_a_transaction_without_statements_needs_no_commit(make_database):
    """Work that never asked the database returns its result."""

    async def nothing(transaction):
        return 7

    assert await make_database().transact(nothing) == 7


@pytest.mark.parametrize("prepared", [True, False])
async def test_several_statements_share_a_round_trip(make_database, dsn, prepared):
    """They run in order, each with its own parameters; the last ones may commit."""
    percent = Statement("percent", "SELECT 7 % $1::int, 8 % 5")

    async def work(transaction):
        rows = await transaction.run_all((ADD, 1), (ADD, 2), (percent, 4))
        await transaction.commit_with((ADD, 3), (ADD, SLOW))
        return rows

    database = make_database(statements=(*STATEMENTS_HERE, percent) if prepared else ())
    assert await database.transact(work) == [(3, 3)]
    assert notes(dsn) == [1, 2, 3, SLOW]


@pytest.mark.parametrize("last", [(FAIL, "22000"), (ADD_AND_DIVIDE, 1)])
async def test_a_commit_whose_last_statement_fails_rolls_back(make_database, dsn, last):
    """Nothing is committed unless all is, and work can't go on after it."""

    async def work(transaction):
        await add(transaction, 1)
        await transaction.commit_with((ADD, 2), last)

    database = make_database()
    with pytest.raises(DatabaseError):
        await database.transact(work)
    await database.autocommit(add, 3)
    assert notes(dsn) == [3]


async def test_an_error_that_work_swallows_does_not_commit(make_database, dsn):
    """PostgreSQL would answer that COMMIT with a silent rollback, so transact raises instead."""

    async def swallow(transaction):
        await add(transaction, 1)
        with pytest.raises(DatabaseError):
            await transaction.run(FAIL, "22000")

    with pytest.raises(DatabaseError, match="went on"):
        await make_database().transact(swallow)
    assert notes(dsn) == []


async def test_a_lost_connection_that_work_swallows_does_not_commit(make_database, dsn):
    """The rows are gone with the connection, so transact does not return as if they were stored."""

    async def swallow(transaction):
        await add(transaction, 1)
        terminate(dsn, await pid(transaction))
        with pytest.raises(DatabaseError):
            await add(transaction, 2)

    with pytest.raises(DatabaseError, match="went on"):
        await make_database().transact(swallow)
    assert notes(dsn) == []


async def test_a_deadlock_is_run_again(make_database, dsn, reactor):
    """Two transactions that lock two rows in opposite order both commit; one of them needed another attempt."""
    database = make_database(size=2)
    await gatherResults([started(database.autocommit(add, n)) for n in (1, 2)])
    both = Deferred()
    attempts, locked = [], set()

    async def lock(transaction, first, second):
        attempts.append(first)
        await transaction.run(LOCK, first)
        locked.add(first)
        if len(locked) == 2 and not both.called:
            both.callback(None)
        await gatherResults([both] if not both.called else [])
        await transaction.run(LOCK, second)
        await add(transaction, first * 10)

    await gatherResults([started(database.transact(lock, 1, 2)), started(database.transact(lock, 2, 1))])
    assert notes(dsn) == [1, 2, 10, 20]
    assert len(attempts) >= 3


@pytest.mark.parametrize("door", ["transact", "once"])
@pytest.mark.parametrize(("code", "times"), [("40P01", 3), ("40001", 3), ("23505", 1), ("55P03", 1), ("57014", 1)])
async def test_only_deadlocks_and_serialization_failures_are_run_again(make_database, code, times, door):
    """Three times in all, and then the error is reported."""
    attempts = []

    async def fail(transaction):
        attempts.append(1)
        await transaction.run(FAIL, code)

    with pytest.raises(DatabaseError):
        await getattr(make_database(), door)(fail)
    assert len(attempts) == times


@pytest.mark.parametrize(("setting", "expected"), [("statement_timeout", "5s"), ("lock_timeout", "4s")])
async def test_a_statement_that_waits_too_long_is_an_error(make_database, dsn, setting, expected):
    """Sleeping and waiting for a lock end at the server's timeout; the connection stays in use."""
    database = make_database()
    before = await database.autocommit(pid)
    assert await database.autocommit(lambda transaction: transaction.run(SHOW, setting)) == [(expected,)]
    await database.autocommit(add, 1)
    holder = connect(dsn)
    holder.cursor().execute("BEGIN; SELECT n FROM notes FOR UPDATE")

    async def wait(transaction):
        await transaction.run(SET, setting, "30ms")
        await transaction.run(LOCK, 1)

    with pytest.raises(DatabaseError, match="timeout"):
        await database.transact(wait)
    holder.close()
    assert await database.autocommit(pid) == before


async def test_every_session_bounds_idle_transactions(make_database):
    """A node that vanishes in the middle of a transaction keeps its locks for seconds only."""
    show = await make_database().autocommit(
        lambda transaction: transaction.run(SHOW, "idle_in_transaction_session_timeout")
    )
    assert show == [("10s",)]


@pytest.mark.parametrize("bounded", [True, False])
async def test_times_are_in_utc_whatever_the_server_prefers(reactor, empty_database, bounded):
    """A server in another time zone, as most installed ones are, doesn't show in any answer."""
    run_sql(empty_database, f"ALTER DATABASE {empty_database.partition('dbname=')[2]} SET timezone = 'Asia/Kolkata'")
    session = await Session.open(reactor, empty_database, bounded=bounded)
    ((moment,),) = await session.execute("SELECT now()")
    assert moment.utcoffset().total_seconds() == 0
    session.close()


# Connections that die.


async def test_an_idle_connection_that_died_is_replaced(make_database, dsn, reactor):
    """The pool notices by itself, without anybody's asking for a connection."""
    database = make_database()
    old = await database.autocommit(pid)
    terminate(dsn, old)
    await eventually(reactor, lambda: old not in dict(backends(dsn)) and len(backends(dsn)) == 1)
    assert await database.autocommit(pid) != old


async def test_nobody_meets_a_connection_that_died_this_very_moment(make_database, dsn):
    """A connection is looked at when it is lent, even before the reactor could see that the server hung up."""
    database = make_database(size=2)
    old = await database.autocommit(pid)
    terminate(dsn, old)
    wait_until(lambda: old not in dict(backends(dsn)))  # the reactor does not run meanwhile
    assert await database.autocommit(pid) != old


@pytest.mark.parametrize("size", [1, 10_000_000])
async def test_sending_to_a_server_that_is_gone_fails_at_once(reactor, dsn, size):
    """libpq may close the socket while it sends; the next sockets of that number are watched all the same."""
    before = len(os.listdir("/proc/self/fd"))
    doomed = [await Session.open(reactor, dsn) for _ in range(3)]
    for ((number,),) in [await session.execute("SELECT pg_backend_pid()") for session in doomed]:
        terminate(dsn, number)
    wait_until(lambda: not backends(dsn))  # the reactor does not run meanwhile
    for session in doomed:
        with pytest.raises(ConnectionLost):
            await session.execute("SELECT %s", ("x" * size,))
    assert len(os.listdir("/proc/self/fd")) == before
    await check_new_connections(reactor, dsn)


async def test_a_transaction_whose_connection_dies_is_run_again(make_database, dsn):
    """Nothing of it was committed, so a second attempt is safe and the caller sees success."""
    attempts = []

    async def die_once(transaction):
        attempts.append(await pid(transaction))
        await add(transaction, 1)
        if len(attempts) == 1:
            terminate(dsn, attempts[0])
        await sleep(transaction, 0.01)

    await make_database().transact(die_once)
    assert notes(dsn) == [1]
    assert len(set(attempts)) == 2


@pytest.mark.parametrize("door", ["transact", "once", "commit_with"])
async def test_an_unknown_outcome_is_never_run_again(make_database, dsn, reactor, door):
    """A connection that dies under a COMMIT, or under a statement that commits itself, is an error."""
    attempts = []

    async def slow(transaction):
        attempts.append(1)
        await (transaction.commit_with((ADD, SLOW)) if door == "commit_with" else add(transaction, SLOW))

    database = make_database()
    number = await database.autocommit(pid)
    reactor.callLater(0.1, terminate, dsn, number)
    with pytest.raises(DatabaseError, match="outcome unknown"):
        await (database.autocommit if door == "autocommit" else database.transact)(slow)
    assert attempts == [1]
    assert notes(dsn) == []


@pytest.mark.parametrize("code", ["25006", "0A000"])
async def test_an_outdated_connection_is_replaced_and_the_work_run_again(make_database, code, monkeypatch):
    """A server that became a standby, or a statement whose result type changed, is cured by a new connection."""
    monkeypatch.setattr(connections, "SETTLED_SECONDS", 0)
    pids = []

    async def outdated(transaction):
        pids.append(await pid(transaction))
        if len(pids) < 3:
            await transaction.run(FAIL, code)
        return "cured"

    assert await make_database().transact(outdated) == "cured"
    assert len(set(pids)) == 3


@pytest.mark.parametrize("trouble", ["read-only", "0A000"])
async def test_a_server_that_has_always_been_so_is_not_connected_to_again(make_database, dsn, trouble):
    """When a fresh connection says it, another one would too: the work fails and nobody loses a connection."""
    attempts = []

    async def fail(transaction):
        attempts.append(await pid(transaction))
        await (add(transaction, 1) if trouble == "read-only" else transaction.run(FAIL, trouble))

    database = make_database(to=f"{dsn} options='-c default_transaction_read_only={trouble == 'read-only'}'")
    with pytest.raises(DatabaseError):
        await database.transact(fail)
    assert attempts == [await database.autocommit(pid)]


@pytest.mark.parametrize("trouble", ["outdated", "silent"])
async def test_one_bad_connection_casts_doubt_on_all(make_database, dsn, reactor, monkeypatch, trouble):
    """Idle ones are replaced before anybody meets them, busy ones when their work is done."""
    monkeypatch.setattr(connections, "SETTLED_SECONDS", 0)
    database = make_database(size=4)
    await eventually(reactor, lambda: len(backends(dsn)) == 4)
    before = set(dict(backends(dsn)))
    busy = started(database.autocommit(sleep, 0.5))
    if trouble == "outdated":
        with pytest.raises(DatabaseError):
            await database.autocommit(lambda transaction: transaction.run(FAIL, "25006"))
    else:
        monkeypatch.setattr(pool, "WORK_SECONDS", 0.1)
        with pytest.raises(DatabaseError):
            await database.autocommit(sleep, 1)
    await eventually(reactor, lambda: len(before & set(dict(backends(dsn)))) <= 1 + (trouble == "silent"))
    assert not busy.called
    await busy
    await eventually(reactor, lambda: len(backends(dsn)) == 4 and not before & set(dict(backends(dsn))))


async def test_a_frozen_backend_is_cut_at_the_deadline(make_database, dsn, monkeypatch):
    """A server that neither answers nor hangs up costs WORK_SECONDS, then its connection is replaced."""
    monkeypatch.setattr(pool, "WORK_SECONDS", 0.2)
    database = make_database()
    for door in ("once", "transact"):
        frozen = await database.autocommit(pid)
        os.kill(frozen, signal.SIGSTOP)
        began = time.monotonic()
        try:
            with pytest.raises(DatabaseError):
                await getattr(database, door)(add, 1)
            assert 0.2 <= time.monotonic() - began < 1
            assert await database.autocommit(pid) != frozen
        finally:
            os.kill(frozen, signal.SIGCONT)


async def test_two_hundred_losses_leak_nothing(make_database, dsn, reactor):
    """File descriptors, reactor registrations and backends are as many afterwards as before."""

    def held():
        watched = len(reactor.getReaders()) + len(reactor.getWriters())
        return len(os.listdir("/proc/self/fd")), watched, len(backends(dsn))

    async def die(transaction, number):
        admin.execute("SELECT pg_terminate_backend(%s)", (await pid(transaction),))
        await sleep(transaction, 1)

    database = make_database(size=4)
    admin_connection = connect(dsn)
    admin = admin_connection.cursor()
    await eventually(reactor, lambda: len(backends(dsn)) == 4)
    await database.autocommit(pid)
    before = held()
    for number in range(67):  # each is tried three times
        with pytest.raises(TransactionAborted):
            await database.transact(die, number)
    await eventually(reactor, lambda: held() == before)
    admin_connection.close()


async def test_a_closed_connection_leaves_no_trace_in_the_reactor(reactor, dsn):
    """Sockets that get the file descriptor of a connection closed in mid-statement are watched like any other."""
    for _ in range(3):
        doomed = [await Session.open(reactor, dsn) for _ in range(5)]
        running = [started(session.execute("SELECT pg_sleep(0.2)")) for session in doomed]
        for session in doomed:
            session.close()
        for outcome in running:
            with pytest.raises(DatabaseError):
                await outcome
        await check_new_connections(reactor, dsn)


async def test_a_connection_waits_for_one_thing_at_a_time(reactor, dsn):
    """An event for the former owner of its file descriptor leaves no registration that libpq doesn't know of."""
    connection = connections._Connection(reactor)
    connecting = connection.connect(dsn)
    assert connection in reactor.getWriters()
    connection.doRead()
    assert (connection in reactor.getReaders(), connection in reactor.getWriters()) == (True, False)
    await connecting
    connection.close()


async def check_new_connections(reactor, dsn):
    """Open more connections than were closed and use all of them at once."""
    fresh = [await Session.open(reactor, dsn) for _ in range(10)]
    answers = await gatherResults([started(session.execute("SELECT 1")) for session in fresh])
    assert answers == [[(1,)]] * 10
    for session in fresh:
        session.close()


# Waiting for a connection.


async def test_the_wait_for_a_connection_is_bounded(make_database, monkeypatch, reactor):
    """Work that finds no connection within BORROW_SECONDS is declined; what runs is not disturbed."""
    monkeypatch.setattr(pool, "BORROW_SECONDS", 0.2)
    database = make_database()
    await database.autocommit(pid)
    busy = started(database.autocommit(sleep, 0.5))
    began = time.monotonic()
    with pytest.raises(Unavailable):
        await database.autocommit(pid)
    assert 0.2 <= time.monotonic() - began < 0.4
    await busy


async def test_the_number_who_wait_is_bounded(make_database, monkeypatch):
    """BORROWERS may wait; the next one is declined at once, and those who wait are served in order."""
    monkeypatch.setattr(pool, "BORROWERS", 2)
    database = make_database()
    await database.autocommit(pid)
    served = []

    async def serve(transaction, number):
        served.append(number)
        await sleep(transaction, 0.05)

    running = [started(database.autocommit(serve, number)) for number in range(3)]
    with pytest.raises(Unavailable):
        await database.autocommit(serve, 3)
    await gatherResults(running)
    assert served == [0, 1, 2]


async def test_a_crowd_whose_work_ends_at_once_costs_no_connection(make_database):
    """A thousand who fail before they ask the database anything each get their error, and the pool goes on."""

    async def fail(transaction):
        raise KeyError("bug")

    database = make_database()
    number = await database.autocommit(pid)
    busy = started(database.autocommit(sleep, 0.1))
    crowd = defer.DeferredList([started(database.transact(fail)) for _ in range(pool.BORROWERS)], consumeErrors=True)
    await busy
    assert all(failure.check(KeyError) for _, failure in await crowd)
    assert await database.autocommit(pid) == number


async def test_work_waits_for_a_server_that_comes_late(make_database, dsn, reactor):
    """A pool opened before there is a database declines work, and fills itself once there is one."""
    late = dsn + "_late"
    database = make_database(to=late)
    with pytest.raises(Unavailable):
        await database.autocommit(pid)
    run_sql(dsn, f"CREATE DATABASE {late.split('dbname=')[1]}")
    began = time.monotonic()
    with pytest.raises(DatabaseError, match="notes"):  # STATEMENTS can't be prepared there, so:
        await make_database(to=late, statements=()).autocommit(add, 1)
    assert time.monotonic() - began < 2
    run_sql(late, SCHEMA)
    await database.autocommit(pid)
    await database.close(0)
    run_sql(dsn, f"DROP DATABASE {late.split('dbname=')[1]} WITH (FORCE)")


async def test_a_value_that_python_has_not_is_an_error(make_database):
    """A row that can't be read is not left out; and the connection is as good as before."""
    database = make_database()
    number = await database.autocommit(pid)
    for door in (database.autocommit, database.transact):
        with pytest.raises(ValueError, match="year"):
            await door(lambda transaction: transaction.run(FAR))
        assert await database.autocommit(pid) == number


# Cancelling.


@pytest.mark.parametrize("door", ["transact", "once"])
@pytest.mark.parametrize("moment", [0, 0.001, 0.003, 0.01, 0.05, 0.1, 0.15])
async def test_a_cancelled_caller_leaves_its_transaction_whole(make_database, dsn, reactor, moment, door):
    """Whenever the client hangs up after work began, the work ends, commits, and gives a clean connection back."""

    async def slowly(transaction):
        await add(transaction, SLOW)  # commits by itself in `once`
        if door == "transact":
            await add(transaction, 1)

    database = make_database()
    number = await database.autocommit(pid)
    caller = started(getattr(database, door)(slowly))
    reactor.callLater(moment, caller.cancel)
    with pytest.raises(CancelledError):
        await caller
    assert await database.autocommit(pid) == number
    assert backends(dsn) == [(number, "idle")]
    assert notes(dsn) == ([1, SLOW] if door == "transact" else [SLOW])


async def test_a_cancelled_caller_is_told_so_whatever_comes_of_its_work(make_database, dsn, reactor):
    """Work that must be run again is not, once its client has hung up; neither is its failure the client's."""
    attempts_made = []

    async def abort(transaction):
        attempts_made.append(1)
        await add(transaction, 1)
        await transaction.run(SLEEP, 0.1)
        await transaction.run(FAIL, "40P01")

    database = make_database()
    await database.autocommit(pid)
    caller = started(database.transact(abort))
    reactor.callLater(0.02, caller.cancel)
    with pytest.raises(CancelledError):
        await caller
    assert (len(attempts_made), notes(dsn)) == (1, [])
    assert await database.autocommit(pid)


async def test_a_connection_is_handed_on_without_its_givers_context(make_database):
    """What the log says of one request is not said of another that waited for the same connection."""
    who = ContextVar("who", default=None)
    seen = []

    async def first():
        who.set("first")
        await database.autocommit(sleep, 0.1)

    database = make_database()
    await database.autocommit(pid)
    busy = started(first())
    waiting = started(database.autocommit(pid)).addCallback(lambda _: seen.append(who.get()))
    await gatherResults([busy, waiting])
    assert seen == [None]


async def test_a_cancelled_caller_that_waits_never_begins(make_database, dsn, reactor):
    """Whoever hangs up in the queue for a connection leaves it, and the others keep their turn."""
    database = make_database()
    await database.autocommit(pid)
    busy = started(database.autocommit(sleep, 0.1))
    waiting = [started(database.transact(add, number)) for number in range(3)]
    waiting[1].cancel()
    with pytest.raises(CancelledError):
        await waiting[1]
    await gatherResults([busy, waiting[0], waiting[2]])
    assert notes(dsn) == [0, 2]


async def test_work_that_is_impatient_waits_all_the_same(make_database, dsn, reactor):
    """A time limit that work puts on its own statement never leaves a connection in mid-statement to the next."""

    async def impatient(transaction):
        await add(transaction, 1)
        await started(sleep(transaction, 0.3)).addTimeout(0.05, reactor)

    database = make_database()
    old = await database.autocommit(pid)
    with pytest.raises(CancelledError):
        await database.transact(impatient)
    assert await database.autocommit(pid) == old
    assert notes(dsn) == [1]


# Closing.


async def test_closing_lets_running_work_end_and_declines_the_rest(make_database, dsn):
    """What runs commits; what waits, and what comes later, is declined."""
    database = make_database()
    await database.autocommit(pid)
    running, waiting = (started(database.transact(add, n)) for n in (SLOW, 2))
    closing = started(database.close(5))
    with pytest.raises(Unavailable):
        await waiting
    with pytest.raises(Unavailable):
        await database.autocommit(pid)
    await running
    await closing
    assert notes(dsn) == [SLOW]
    wait_until(lambda: not backends(dsn))


async def test_closing_cuts_what_does_not_end(make_database, dsn):
    """After the time given for it, work that still runs fails and leaves nothing."""

    async def slowly(transaction):
        await add(transaction, 1)
        await sleep(transaction, 0.4)

    database = make_database()
    await database.autocommit(pid)
    running = started(database.transact(slowly))
    began = time.monotonic()
    await database.close(0.05)
    assert time.monotonic() - began < 0.15
    with pytest.raises(Unavailable):  # it would have been run again, had the pool not been closed
        await running
    wait_until(lambda: not backends(dsn))
    assert notes(dsn) == []


@pytest.mark.parametrize("state", ["connecting", "pausing", "full"])
async def test_a_closed_pool_leaves_nothing_in_the_reactor(make_database, reactor, black_hole, dsn, state, monkeypatch):
    """Whatever it was doing, neither a timer nor a socket of it is left."""
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 1000)
    monkeypatch.setattr(pool, "RECONNECT_SECONDS", 1000)
    sockets = len(reactor.getReaders()) + len(reactor.getWriters())
    database = make_database(to={"connecting": black_hole, "pausing": "host=/nowhere", "full": dsn}[state])
    await deferLater(reactor, 0.05)
    await database.close(0)
    assert not [call for call in reactor.getDelayedCalls() if call.getTime() > reactor.seconds() + 900]
    assert len(reactor.getReaders()) + len(reactor.getWriters()) == sockets


# Connecting.


@pytest.fixture
def black_hole():
    """A TCP address that takes connections and never answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        yield f"host=127.0.0.1 port={silent.getsockname()[1]} user=solisync dbname=postgres"


async def test_a_silent_server_is_given_up(reactor, black_hole, monkeypatch):
    """Connecting fails after CONNECT_SECONDS without an answer."""
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.2)
    began = time.monotonic()
    with pytest.raises(ConnectionFailed, match=r"no answer within 0\.2 s"):
        await Session.open(reactor, black_hole)
    assert 0.2 <= time.monotonic() - began < 1


async def test_a_silent_host_does_not_hide_the_next_one(make_database, reactor, black_hole, dsn, monkeypatch):
    """The next host is tried while the first is silent, and a pool stays with the one that answers."""
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 1000)
    monkeypatch.setattr(attempts, "HEAD_START_SECONDS", 0.2)
    silent, good = psycopg2.extensions.parse_dsn(black_hole), psycopg2.extensions.parse_dsn(dsn)
    both = psycopg2.extensions.make_dsn(
        **good | {"host": f"127.0.0.1,{good['host']}", "port": f"{silent['port']},{good['port']}"}
    )
    (await Session.open(reactor, both)).close()
    began = time.monotonic()
    database = make_database(8, to=both)
    assert await database.autocommit(pid)
    await eventually(reactor, lambda: len(backends(dsn)) == 8)
    assert time.monotonic() - began < 8 * 0.2


async def test_a_pool_survives_what_nobody_foresaw(make_database, dsn, monkeypatch, no_lost_failures):
    """Whatever connecting raises, it is logged and tried again."""
    monkeypatch.setattr(pool, "RECONNECT_SECONDS", 0.01)
    working, failing = Session.open, [RuntimeError("can't start new thread"), KeyError("bug")]

    async def fail_twice(*arguments, **options):
        if failing:
            raise failing.pop()
        return await working(*arguments, **options)

    monkeypatch.setattr(Session, "open", fail_twice)
    assert await make_database().autocommit(pid)
    assert len(no_lost_failures) == 2
    no_lost_failures.clear()


async def test_a_name_is_looked_up_while_the_service_goes_on(reactor, monkeypatch):
    """The resolver may take its time: in a thread."""
    answered = threading.Event()

    def resolve(name, *_, **__):
        assert answered.wait(10)
        return [(0, 0, 0, "", ("127.0.0.1", 0)), (0, 0, 0, "", ("::1", 0, 0, 0)), (0, 0, 0, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    looking = started(each_address(reactor, "host=db.test port=1 sslmode=verify-full"))
    await deferLater(reactor, 0.01)
    assert not looking.called
    answered.set()
    assert [psycopg2.extensions.parse_dsn(place) for place in await looking] == [
        {"host": "db.test", "hostaddr": address, "port": "1", "sslmode": "verify-full"}
        for address in ("127.0.0.1", "::1")
    ]


async def test_a_name_without_an_address_is_a_failed_connection(reactor, monkeypatch):
    """The other hosts are tried, and it is looked up again the next time."""

    def fail(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(ConnectionFailed, match=r"^can't look up db\.test: Name or service not known; connection to"):
        await Session.open(reactor, "host=db.test,/nowhere")


@pytest.mark.parametrize(
    "dsn",
    [
        "dbname=a",
        "service=a host=b",
        "host=/run/postgresql",
        "host=@abstract",
        "host=127.0.0.1",
        "host=::1",
        "host=fe80::1%lo",
        "host=db.test hostaddr=127.0.0.1",
        "host=a,b,c port=1,2",
    ],
)
async def test_only_names_are_looked_up(reactor, monkeypatch, dsn):
    """Addresses and unix sockets are taken as they are; so is what the DSN leaves to libpq."""
    monkeypatch.setattr(socket, "getaddrinfo", None)
    assert await each_address(reactor, dsn) == [dsn]


@pytest.mark.parametrize(
    ("dsn", "hosts"),
    [
        ("dbname=a", ["dbname=a"]),
        ("host=a port=1", ["host=a port=1"]),
        ("host=a,b dbname=d", ["host=a dbname=d", "host=b dbname=d"]),
        ("host=a,b port=1", ["host=a port=1", "host=b port=1"]),
        ("postgresql://u@a:1,b:2/d", ["user=u dbname=d host=a port=1", "user=u dbname=d host=b port=2"]),
        ("hostaddr=::1,::2 host=a,b", ["hostaddr=::1 host=a", "hostaddr=::2 host=b"]),
        ("host=a,b,c port=1,2", ["host=a,b,c port=1,2"]),
        ("host=a target_session_attrs=prefer-standby", ["host=a target_session_attrs=prefer-standby"]),
        (
            "host=a,b target_session_attrs=prefer-standby",
            [f"host={host} target_session_attrs={wanted}" for wanted in ("standby", "any") for host in "ab"],
        ),
    ],
)
def test_a_dsn_is_taken_apart_by_host(dsn, hosts):
    """Each host with its own port and address; a list that does not fit is left for libpq to refuse."""
    parse = psycopg2.extensions.parse_dsn
    assert [parse(host) for host in each_host(dsn)] == [parse(host) for host in hosts]


# Statements.


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("text", ["%", "%s %(1)s %%", "$1", "\\", "'; --", '"', "\n\t\x01", "ünï 🂡", "", "\\x00"])
async def test_parameters_are_taken_literally(make_database, prepared, text):
    """Nothing in a parameter is syntax, prepared or not."""
    echo = Statement("echo", "SELECT $1::text, '%', 7 % $2::int, $1::text")
    database = make_database(statements=(echo,) if prepared else ())
    assert await database.autocommit(lambda transaction: transaction.run(echo, text, 4)) == [(text, "%", 3, text)]


@pytest.mark.parametrize("prepared", [True, False])
async def test_a_statement_without_parameters_may_contain_a_percent_sign(make_database, prepared):
    """The per cent sign is the modulo operator and a wildcard, prepared or not."""
    modulo = Statement("modulo", "SELECT 7 % 4, 'abc' LIKE 'a%'")
    database = make_database(statements=(modulo,) if prepared else ())
    assert await database.autocommit(lambda transaction: transaction.run(modulo)) == [(3, True)]


async def test_a_parameter_that_can_not_be_sent_harms_nobody(make_database, dsn, reactor):
    """U+0000 and lone surrogates fail before anything is sent; the transaction is rolled back."""
    database = make_database()
    before = await database.autocommit(pid)

    async def bad(transaction, text):
        await add(transaction, 1)
        await transaction.run(SHOW, text)

    for text in ("a\0b", "\ud800"):
        with pytest.raises(ValueError):
            await database.transact(bad, text)
        with pytest.raises(ValueError):
            await database.autocommit(lambda transaction, text=text: transaction.run(SHOW, text))
    assert await database.autocommit(pid) == before
    assert notes(dsn) == []
    terminate(dsn, before)
    await eventually(reactor, lambda: before not in dict(backends(dsn)))
    assert await database.autocommit(pid) != before


SAMPLES = {
    "uuid": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
    "text": "ann",
    "integer": 3,
    "bigint": 3,
    "boolean": True,
    "bytea": b"\x89",
    "date": "2026-04-26",
    "double precision": 0.5,
    "json": "{}",
    "jsonb": "{}",
    "numeric": 3,
    "text[]": ["ann"],
    "timestamp with time zone": datetime(2026, 4, 26, 12, tzinfo=UTC),
}


async def test_every_statement_is_the_same_prepared_and_unprepared(reactor, empty_database):
    """Whatever SOLISYNC_PREPARED_STATEMENTS says, a statement has the same result."""
    await migrate(reactor, empty_database, load_migrations())
    run_sql(empty_database, "INSERT INTO users VALUES (%(uuid)s, %(text)s, %(text)s, now())", SAMPLES)
    live = "INSERT INTO refresh_tokens VALUES (%(uuid)s, %(uuid)s, '2030-01-01')"
    run_sql(empty_database, live, SAMPLES)
    prepared = await Session.open(reactor, empty_database, statements=STATEMENTS)
    plain = await Session.open(reactor, empty_database)
    types = dict(await prepared.execute("SELECT name, parameter_types::text[] FROM pg_prepared_statements"))
    assert set(types) == {statement.name for statement in STATEMENTS}
    for statement in STATEMENTS:
        parameters = [SAMPLES[kind] for kind in types[statement.name] or ()]
        outcomes = []
        for session in (prepared, plain):
            await session.execute("BEGIN")
            try:
                outcomes.append(await session.run((statement, *parameters)))
            except DatabaseError as error:
                outcomes.append(str(error))
            await session.execute("ROLLBACK")
        assert outcomes[0] == outcomes[1], statement.name
    prepared.close()
    plain.close()
