"""The pool on a real PostgreSQL: lending connections, and replacing dead ones."""

import os
import time
from contextvars import ContextVar

import psycopg2
import pytest
from twisted.internet.defer import Deferred, DeferredList, gatherResults
from twisted.internet.task import deferLater

from solisync.errors import DatabaseError, TransactionAborted, Unavailable
from solisync.postgres import TIMES, PoolTimes, pool
from solisync.postgres.database import Database
from solisync.postgres.opening import open_connection
from tests.harness.concurrency import until, wait_for
from tests.harness.constants import PATIENCE
from tests.harness.postgres import connect, run_sql
from tests.postgres.notes import FAIL, PID, SCHEMA, SLOW, Holding, add, backends, pid, sleep, started, terminate


async def test_dead_idle_connection_is_replaced(make_database, dsn, reactor):
    """The pool notices without a request for a connection."""
    database = make_database()
    old = await database.run(pid)
    terminate(dsn, old)
    await until(reactor, lambda: old not in dict(backends(dsn)) and len(backends(dsn)) == 1)
    assert await database.run(pid) != old


async def test_connection_that_just_died_is_never_lent(make_database, dsn):
    """The pool checks a connection when it lends it, before the reactor can see that the server hung up."""
    database = make_database(size=2)
    old = await database.run(pid)
    terminate(dsn, old)
    wait_for(lambda: old not in dict(backends(dsn)))  # the reactor does not run during the wait
    assert await database.run(pid) != old


@pytest.mark.parametrize("trouble", ["outdated", "silent"])
async def test_bad_connection_makes_the_pool_replace_all(make_database, dsn, reactor, trouble):
    """Idle ones are replaced before they are lent, busy ones when their work is done."""
    database = make_database(size=4, times=PoolTimes(settled=0))
    await until(reactor, lambda: database.pool.idle == 4)
    before = set(dict(backends(dsn)))
    with Holding(dsn):
        busy = started(database.run(add, SLOW))
        if trouble == "outdated":
            with pytest.raises(DatabaseError):
                await database.run(lambda transaction: transaction.run((FAIL, "25006")))
        else:
            database.pool.times = PoolTimes(settled=0, work=0.1)
            with pytest.raises(DatabaseError):
                await database.run(sleep, 1)
        await until(reactor, lambda: len(before & set(dict(backends(dsn)))) <= 1 + (trouble == "silent"))
        assert not busy.called
    await busy
    await until(reactor, lambda: len(backends(dsn)) == 4 and not before & set(dict(backends(dsn))))


@pytest.mark.long
async def test_two_hundred_lost_connections_leak_nothing(make_database, dsn, reactor):
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
    await until(reactor, lambda: database.pool.idle == 4)  # the server also counts one that is still being opened
    before = held()
    for number in range(67):  # each is tried three times
        with pytest.raises(TransactionAborted):
            await database.transact(die, number)
    await until(reactor, lambda: all(now <= then for now, then in zip(held(), before, strict=True)))
    admin_connection.close()


async def test_wait_for_a_connection_is_bounded(make_database):
    """Work that finds no connection in time is declined; running work is not disturbed."""
    database = make_database(times=PoolTimes(borrow=0.2))
    await database.run(pid)
    release = Deferred()

    async def hold(_):
        await release

    busy = started(database.run(hold))
    began = time.monotonic()
    with pytest.raises(Unavailable):
        await database.run(pid)
    assert 0.2 <= time.monotonic() - began < 10 * 0.2
    release.callback(None)
    await busy


async def test_number_of_waiting_borrowers_is_bounded(make_database, monkeypatch):
    """BORROWERS may wait, and are served in order; the next one is declined immediately."""
    monkeypatch.setattr(pool, "BORROWERS", 2)
    database = make_database()
    await database.run(pid)
    served = []

    async def serve(transaction, number):
        served.append(number)
        await sleep(transaction, 0.05)

    running = [started(database.run(serve, number)) for number in range(3)]
    with pytest.raises(Unavailable):
        await database.run(serve, 3)
    await gatherResults(running)
    assert served == [0, 1, 2]


async def test_work_that_fails_without_a_query_costs_no_connection(make_database):
    """A thousand callers each get their error, and the pool stays usable."""

    async def fail(transaction):
        raise KeyError("bug")

    database = make_database()
    number = await database.run(pid)
    busy = started(database.run(sleep, 0.1))
    crowd = DeferredList([started(database.transact(fail)) for _ in range(pool.BORROWERS)], consumeErrors=True)
    await busy
    assert all(failure.check(KeyError) for _, failure in await crowd)
    assert await database.run(pid) == number


async def test_work_before_the_pool_is_open_waits_for_a_bounded_time(reactor, dsn):
    database = Database(reactor=reactor, size=1, statements=(PID,), times=PoolTimes(borrow=0.2))
    began = time.monotonic()
    with pytest.raises(Unavailable):
        await database.run(pid)
    assert time.monotonic() - began < 10 * 0.2
    database.pool.times = PoolTimes(borrow=PATIENCE)
    waiting = started(database.run(pid))
    database.open(dsn)
    assert await waiting
    await database.close(0)


async def test_pool_fills_when_its_database_appears(make_database, dsn, reactor):
    """Until then the pool declines work."""
    late = dsn + "_late"
    database = make_database(to=late)
    with pytest.raises(Unavailable):
        await database.run(pid)
    run_sql(dsn, f"CREATE DATABASE {late.split('dbname=')[1]}")
    began = time.monotonic()
    with pytest.raises(DatabaseError, match="notes"):  # STATEMENTS can't be prepared there, so:
        await make_database(to=late, statements=()).run(add, 1)
    assert time.monotonic() - began < 10 * TIMES.reconnect
    run_sql(late, SCHEMA)
    await database.run(pid)
    await database.close(0)
    run_sql(dsn, f"DROP DATABASE {late.split('dbname=')[1]} WITH (FORCE)")


async def test_connection_is_lent_without_the_context_of_the_last_borrower(make_database):
    """Otherwise the log of one request would have fields of another."""
    who = ContextVar("who", default=None)
    seen = []

    async def first():
        who.set("first")
        await database.run(sleep, 0.1)

    database = make_database()
    await database.run(pid)
    busy = started(first())
    waiting = started(database.run(pid)).addCallback(lambda _: seen.append(who.get()))
    await gatherResults([busy, waiting])
    assert seen == [None]


@pytest.mark.parametrize("state", ["connecting", "pausing", "full"])
async def test_closed_pool_leaves_nothing_in_the_reactor(make_database, reactor, black_hole, dsn, state):
    """No state of the pool leaves a timer or a socket."""
    times = PoolTimes(connect=1000, reconnect=1000)
    timers = set(reactor.getDelayedCalls())
    sockets = {*reactor.getReaders(), *reactor.getWriters()}
    database = make_database(to={"connecting": black_hole, "pausing": "host=/nowhere", "full": dsn}[state], times=times)
    await deferLater(reactor, 0.05)
    await database.close(0)
    assert not [call for call in set(reactor.getDelayedCalls()) - timers if call.getTime() > reactor.seconds() + 900]
    assert {*reactor.getReaders(), *reactor.getWriters()} <= sockets


async def test_silent_host_does_not_hide_the_next_one(make_database, reactor, black_hole, dsn):
    """The pool tries the next host while the first is silent, and stays with the one that answers."""
    times = PoolTimes(connect=1000, head_start=0.5)
    silent, good = psycopg2.extensions.parse_dsn(black_hole), psycopg2.extensions.parse_dsn(dsn)
    both = psycopg2.extensions.make_dsn(
        **good | {"host": f"127.0.0.1,{good['host']}", "port": f"{silent['port']},{good['port']}"}
    )
    (await open_connection(reactor, both, times=times)).close()
    began = time.monotonic()
    database = make_database(8, to=both, times=times)
    assert await database.run(pid)
    await until(reactor, lambda: database.pool.idle == 8)
    assert time.monotonic() - began < 8 * 0.5


async def test_pool_survives_unexpected_errors_of_connecting(make_database, dsn, monkeypatch, no_lost_failures):
    """Each error is logged, and the pool tries again."""
    working, failing = open_connection, [RuntimeError("can't start new thread"), KeyError("bug")]

    async def fail_twice(*arguments, **options):
        if failing:
            raise failing.pop()
        return await working(*arguments, **options)

    monkeypatch.setattr(pool, "open_connection", fail_twice)
    assert await make_database(times=PoolTimes(reconnect=0.01)).run(pid)
    assert len(no_lost_failures) == 2
    no_lost_failures.clear()
