"""`transact` and `run` on a real PostgreSQL when work, the database or clients fail."""

import os
import signal
import time
from itertools import pairwise

import pytest
from twisted.internet.defer import CancelledError, Deferred, gatherResults
from twisted.internet.task import deferLater

from solisync.errors import DatabaseError, Unavailable
from solisync.postgres import TIMES, PoolTimes
from solisync.postgres.statement import Statement
from solisync.process.tasks import detached
from tests.harness.concurrency import until, wait_for
from tests.harness.constants import PATIENCE
from tests.harness.postgres import lock_waiters, run_sql
from tests.postgres.notes import (
    ADD,
    FAIL,
    FAR,
    LOCK,
    PID,
    SLOW,
    WAIT,
    Holding,
    add,
    backends,
    notes,
    pid,
    sleep,
    started,
    terminate,
)


async def test_deadlock_is_retried(make_database, dsn, reactor):
    """Two transactions that lock two rows in opposite order both commit; one of them needs another attempt."""
    database = make_database(size=2)
    await gatherResults([started(database.run(add, n)) for n in (1, 2)])
    both = Deferred()
    attempts, locked = [], set()

    async def lock(transaction, first, second):
        attempts.append(first)
        await transaction.run((LOCK, first))
        locked.add(first)
        if len(locked) == 2 and not both.called:
            both.callback(None)
        await gatherResults([both] if not both.called else [])
        await transaction.run((LOCK, second))
        await add(transaction, first * 10)

    await gatherResults([started(database.transact(lock, 1, 2)), started(database.transact(lock, 2, 1))])
    assert notes(dsn) == [1, 2, 10, 20]
    assert len(attempts) >= 3


@pytest.mark.parametrize("method", ["transact", "run"])
@pytest.mark.parametrize(("code", "times"), [("40P01", 3), ("40001", 3), ("23505", 1), ("55P03", 2), ("57014", 2)])
async def test_only_transient_errors_are_retried(make_database, reactor, code, times, method):
    """Deadlocks and serialization failures get two more attempts, timeouts one, each after a pause."""
    attempts = []

    async def fail(transaction):
        attempts.append(reactor.seconds())
        await transaction.run((FAIL, code))

    with pytest.raises(DatabaseError):
        await getattr(make_database(), method)(fail)
    assert len(attempts) == times
    assert all(after - before >= TIMES.again for before, after in pairwise(attempts))


async def test_transaction_is_retried_when_its_connection_dies(make_database, dsn):
    """Nothing was committed, so a second attempt is safe."""
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


@pytest.mark.parametrize("method", ["transact", "run", "commit_with"])
async def test_unknown_outcome_is_never_retried(make_database, dsn, reactor, method):
    """A connection that dies during a COMMIT, or during a statement that commits itself, is an error."""
    attempts = []

    async def slow(transaction):
        attempts.append(1)
        await (transaction.commit_with((ADD, SLOW)) if method == "commit_with" else add(transaction, SLOW))

    database = make_database()
    number = await database.run(pid)
    with Holding(dsn):
        outcome = started((database.run if method == "run" else database.transact)(slow))
        await until(reactor, lambda: [waiter.pid for waiter in lock_waiters(dsn)] == [number])
        terminate(dsn, number)
        with pytest.raises(DatabaseError, match="outcome unknown"):
            await outcome
    assert attempts == [1]
    assert notes(dsn) == []


@pytest.mark.parametrize("code", ["25006", "0A000"])
async def test_outdated_connection_is_replaced_and_its_work_retried(make_database, code):
    """Examples are a server that became a standby, and a statement whose result type changed."""
    pids = []

    async def outdated(transaction):
        pids.append(await pid(transaction))
        if len(pids) < 3:
            await transaction.run((FAIL, code))
        return "cured"

    assert await make_database(times=PoolTimes(settled=0)).transact(outdated) == "cured"
    assert len(set(pids)) == 3


async def test_work_is_retried_at_each_change_of_a_result_type(make_database, dsn):
    """The retry uses a connection that was made after the change, however young the old connections are."""
    everything = Statement("everything", "SELECT * FROM notes")
    database = make_database(size=4, statements=(everything, PID))
    try:
        for number in range(5):
            await gatherResults([started(database.run(pid)) for _ in range(4)])
            run_sql(dsn, f"ALTER TABLE notes ADD COLUMN again{number} int")
            for _ in range(4):
                assert await database.run(lambda transaction: transaction.run((everything,))) == []
    finally:
        for number in range(5):
            run_sql(dsn, f"ALTER TABLE notes DROP COLUMN IF EXISTS again{number}")


async def test_read_only_error_on_a_fresh_connection_is_not_retried(make_database, dsn):
    """Another connection would give the same error. The work fails, and the pool keeps its connections."""
    attempts = []

    async def fail(transaction):
        attempts.append(await pid(transaction))
        await add(transaction, 1)

    database = make_database(to=f"{dsn} options='-c default_transaction_read_only=on'")
    with pytest.raises(DatabaseError):
        await database.transact(fail)
    assert attempts == [await database.run(pid)]


async def test_unreadable_value_is_an_error(make_database):
    """Python has no date that far in the future. The connection stays usable."""
    database = make_database()
    number = await database.run(pid)
    for method in (database.run, database.transact):
        with pytest.raises(ValueError, match="year"):
            await method(lambda transaction: transaction.run((FAR,)))
        assert await database.run(pid) == number


@pytest.mark.parametrize("method", ["transact", "run"])
@pytest.mark.parametrize("moment", [0, 0.001, 0.003, 0.01, 0.05, 0.1, 0.15])
async def test_cancelled_caller_still_commits_and_gets_the_result(make_database, dsn, reactor, moment, method):
    """The moment of the hang-up doesn't matter, once the work has begun."""

    async def slowly(transaction):
        await add(transaction, SLOW)  # commits by itself in `run`
        if method == "transact":
            await add(transaction, 1)
        return "done"

    database = make_database()
    number = await database.run(pid)
    with Holding(dsn):
        caller = started(getattr(database, method)(slowly))
        await deferLater(reactor, moment)
        assert not caller.called
        caller.cancel()
    assert await caller == "done"
    assert await database.run(pid) == number
    assert backends(dsn) == [(number, "idle")]
    assert notes(dsn) == ([1, SLOW] if method == "transact" else [SLOW])


async def test_cancelled_caller_begins_no_other_work(make_database, dsn, reactor):
    """A caller that is cancelled during work gets its result, and ends at its next work."""
    told = []

    async def two_works():
        told.append(await database.transact(add, SLOW))
        try:
            await database.transact(add, 1)
        finally:
            await database.transact(add, 2)  # what cleans up is not cancelled again

    database = make_database()
    await database.run(pid)
    with Holding(dsn):
        caller = started(two_works())
        await until(reactor, lambda: lock_waiters(dsn))
        caller.cancel()
    with pytest.raises(CancelledError):
        await caller
    assert (len(told), notes(dsn)) == (1, [2, SLOW])


async def test_detached_work_of_a_cancelled_caller_continues(make_database, dsn, reactor):
    """A shared list, for example, is loaded for other clients, too."""

    async def shares():
        await database.transact(add, SLOW)
        return await detached(database.transact(add, 1))

    database = make_database()
    await database.run(pid)
    with Holding(dsn):
        caller = started(shares())
        await until(reactor, lambda: lock_waiters(dsn))
        caller.cancel()
    await caller
    assert notes(dsn) == [1, SLOW]


async def test_failed_work_of_a_cancelled_caller_is_not_retried(make_database, dsn, reactor):
    """The caller gets CancelledError and not the failure."""
    attempts_made = []

    async def abort(transaction):
        attempts_made.append(1)
        await add(transaction, 1)
        await transaction.run((WAIT,))
        await transaction.run((FAIL, "40P01"))

    database = make_database()
    await database.run(pid)
    with Holding(dsn):
        caller = started(database.transact(abort))
        await until(reactor, lambda: lock_waiters(dsn))
        caller.cancel()
    with pytest.raises(CancelledError):
        await caller
    assert (len(attempts_made), notes(dsn)) == (1, [])
    assert await database.run(pid)


async def test_cancelled_caller_leaves_the_queue(make_database, dsn, reactor):
    """The other callers keep their turn."""
    database = make_database()
    await database.run(pid)
    busy = started(database.run(sleep, 0.1))
    waiting = [started(database.transact(add, number)) for number in range(3)]
    waiting[1].cancel()
    with pytest.raises(CancelledError):
        await waiting[1]
    await gatherResults([busy, waiting[0], waiting[2]])
    assert notes(dsn) == [0, 2]


async def test_caller_cancelled_between_attempts_gets_no_other(make_database, reactor):
    """A cancellation in the pause after a deadlock ends the caller immediately, and costs no connection."""
    attempts = []

    async def fail(transaction):
        attempts.append(1)
        await transaction.run((FAIL, "40P01"))

    database = make_database(times=PoolTimes(again=PATIENCE))
    caller = started(database.transact(fail))
    await until(reactor, lambda: attempts and database.pool.idle)
    caller.cancel()
    with pytest.raises(CancelledError):
        await caller
    assert len(attempts) == 1
    assert await database.run(pid)


async def test_time_limit_of_work_never_interrupts_a_statement(make_database, dsn, reactor):
    """Otherwise the next borrower would get a connection that is in the middle of a statement."""

    async def impatient(transaction):
        await add(transaction, 1)
        await started(sleep(transaction, 0.3)).addTimeout(0, reactor)  # before the answer of the server can be read

    database = make_database()
    old = await database.run(pid)
    await started(database.transact(impatient))
    assert await database.run(pid) == old
    assert notes(dsn) == [1]


async def test_frozen_backend_is_cut_at_the_deadline(make_database, dsn):
    """The borrower waits for a bounded time; then the connection is replaced."""
    database = make_database(times=PoolTimes(work=0.2))
    for method in ("run", "transact"):
        frozen = await database.run(pid)
        os.kill(frozen, signal.SIGSTOP)
        began = time.monotonic()
        try:
            with pytest.raises(DatabaseError):
                await getattr(database, method)(add, 1)
            assert 0.2 <= time.monotonic() - began < 10 * 0.2
            assert await database.run(pid) != frozen
        finally:
            os.kill(frozen, signal.SIGCONT)


async def test_closing_lets_running_work_end_and_declines_the_rest(make_database, dsn):
    """Running work commits; waiting and later work is declined."""
    database = make_database()
    await database.run(pid)
    with Holding(dsn):
        running, queued = (started(database.transact(add, n)) for n in (SLOW, 2))
        closing = started(database.close(5))
        with pytest.raises(Unavailable):
            await queued
        with pytest.raises(Unavailable):
            await database.run(pid)
    await running
    await closing
    assert notes(dsn) == [SLOW]
    wait_for(lambda: not backends(dsn))


async def test_closing_cuts_work_after_its_time(make_database, dsn):
    """The work fails and leaves no rows."""

    async def slowly(transaction):
        await add(transaction, 1)
        await transaction.run((WAIT,))

    database = make_database()
    await database.run(pid)
    with Holding(dsn):
        running = started(database.transact(slowly))
        await database.close(0.05)
        with pytest.raises(Unavailable):  # it would have been run again, had the pool not been closed
            await running
    wait_for(lambda: not backends(dsn))
    assert notes(dsn) == []
