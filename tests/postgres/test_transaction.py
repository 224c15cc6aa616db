"""A transaction on a real PostgreSQL: completely or not at all."""

import pytest
from twisted.internet.defer import CancelledError

from solisync.errors import DatabaseError, Unavailable
from solisync.postgres.statement import Statement
from tests.harness.postgres import connect
from tests.postgres.notes import (
    ADD,
    ADD_AND_DIVIDE,
    FAIL,
    LOCK,
    SET,
    SHOW,
    SLOW,
    STATEMENTS,
    add,
    notes,
    pid,
    terminate,
)


async def test_transaction_commits_all_of_its_work(make_database, dsn):
    """The rows are visible once `transact` has returned, and the result of the work comes back."""

    async def two(transaction, *, first):
        await add(transaction, first)
        await add(transaction, first + 1)
        return "done"

    assert await make_database().transact(two, first=1) == "done"
    assert notes(dsn) == [1, 2]


@pytest.mark.parametrize("error", [Unavailable(), KeyError("bug"), CancelledError()])
async def test_any_exception_rolls_back(make_database, dsn, error):
    """Work that raises stores nothing, and its connection is clean for the next one."""

    async def fail(transaction):
        await add(transaction, 1)
        raise error

    database = make_database()
    with pytest.raises(type(error)):
        await database.transact(fail)
    await database.run(add, 2)
    assert notes(dsn) == [2]


async def test_single_statement_is_atomic(make_database, dsn):
    """A statement that fails halfway stores nothing."""
    with pytest.raises(DatabaseError, match="division by zero"):
        await make_database().run(lambda transaction: transaction.run((ADD_AND_DIVIDE, 1)))
    assert notes(dsn) == []


async def test_transaction_without_statements_needs_no_commit(make_database):
    """Work that never queried the database returns its result."""

    async def nothing(transaction):
        return 7

    assert await make_database().transact(nothing) == 7


@pytest.mark.parametrize("prepared", [True, False])
async def test_several_statements_share_a_round_trip(make_database, dsn, prepared):
    """The statements run in order, each with its own parameters; the last ones may commit."""
    percent = Statement("percent", "SELECT 7 % $1::int, 8 % 5")

    async def work(transaction):
        rows = await transaction.run((ADD, 1), (ADD, 2), (percent, 4))
        await transaction.commit_with((ADD, 3), (ADD, SLOW))
        return rows

    database = make_database(statements=(*STATEMENTS, percent) if prepared else ())
    assert await database.transact(work) == [(3, 3)]
    assert notes(dsn) == [1, 2, 3, SLOW]


@pytest.mark.parametrize("last", [(FAIL, "22000"), (ADD_AND_DIVIDE, 1)])
async def test_commit_whose_last_statement_fails_rolls_back(make_database, dsn, last):
    """No statement is committed, and the work can't continue."""

    async def work(transaction):
        await add(transaction, 1)
        await transaction.commit_with((ADD, 2), last)

    database = make_database()
    with pytest.raises(DatabaseError):
        await database.transact(work)
    await database.run(add, 3)
    assert notes(dsn) == [3]


async def test_swallowed_error_does_not_commit(make_database, dsn):
    """PostgreSQL would answer that COMMIT with a silent rollback, so `transact` raises instead."""

    async def swallow(transaction):
        await add(transaction, 1)
        with pytest.raises(DatabaseError):
            await transaction.run((FAIL, "22000"))

    with pytest.raises(DatabaseError, match="continued after"):
        await make_database().transact(swallow)
    assert notes(dsn) == []


async def test_swallowed_loss_of_the_connection_does_not_commit(make_database, dsn):
    """The rows are gone with the connection, so `transact` raises."""

    async def swallow(transaction):
        await add(transaction, 1)
        terminate(dsn, await pid(transaction))
        with pytest.raises(DatabaseError):
            await add(transaction, 2)

    with pytest.raises(DatabaseError, match="continued after"):
        await make_database().transact(swallow)
    assert notes(dsn) == []


@pytest.mark.parametrize(("setting", "expected"), [("statement_timeout", "5s"), ("lock_timeout", "4s")])
async def test_statement_that_waits_too_long_is_an_error(make_database, dsn, setting, expected):
    """Sleeping and waiting for a lock end at the server's timeout; the connection stays in use."""
    database = make_database()
    before = await database.run(pid)
    assert await database.run(lambda transaction: transaction.run((SHOW, setting))) == [(expected,)]
    await database.run(add, 1)
    holder = connect(dsn)
    holder.cursor().execute("BEGIN; SELECT n FROM notes FOR UPDATE")

    async def wait(transaction):
        await transaction.run((SET, setting, "30ms"))
        await transaction.run((LOCK, 1))

    with pytest.raises(DatabaseError, match="timeout"):
        await database.transact(wait)
    holder.close()
    assert await database.run(pid) == before
