"""Statements on one connection, and the two ways to run work: in a transaction, or with a commit by each statement."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from ..errors import ConnectionLost, DatabaseError, Interrupted
from ..process.tasks import Task
from .connection import Connection
from .statement import Call, Query, Row

S = TypeVar("S", bound="Statements")
T = TypeVar("T")


class Statements:
    """Runs the statements of storage functions; PostgreSQL commits each call, unless this is a Transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, *steps: Call) -> Task[list[Row]]:
        """Run statements with their parameters in one round trip; return the rows of the last."""
        return self._connection.run(*steps)

    async def many(self, query: Query[T], *parameters: object, first: Call | None = None) -> list[T]:
        """Run `query`, with `first` before it in the same round trip, and return each row as a value."""
        return query.values(await self.run(*([first] if first else ()), (query, *parameters)))

    async def maybe(self, query: Query[T], *parameters: object, first: Call | None = None) -> T | None:
        """Like `many`, but return the only row as a value, or None if there is no row; raise ValueError for more."""
        return query.value_or_none(await self.run(*([first] if first else ()), (query, *parameters)))

    async def one(self, query: Query[T], *parameters: object, first: Call | None = None) -> T:
        """Like `many`, but return the only row as a value; raise ValueError for any other number of rows."""
        return query.value(await self.run(*([first] if first else ()), (query, *parameters)))


class Transaction(Statements):
    """Runs statements in one transaction; the BEGIN is sent together with the first statement."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._opening = "BEGIN; "
        self._committed = False

    async def commit_with(self, *steps: Call) -> None:
        """Run statements and COMMIT in one round trip; no other statement may follow.

        Raises Interrupted if the connection is lost, because the outcome is then unknown.
        """
        try:
            await self.run(*steps, after="; COMMIT" if steps else "COMMIT")
        except ConnectionLost as error:
            raise _unknown_outcome(error) from error
        self._committed = True

    async def commit(self) -> None:
        """Commit; do nothing if no statement was run, or if `commit_with` has committed already.

        Raises DatabaseError if the outcome is unknown, or if a statement had failed: PostgreSQL would silently roll
        back.
        """
        if self._opening or self._committed:
            return
        if not self._connection.can_commit:
            raise DatabaseError("work continued after a statement had failed")
        await self.commit_with()

    def run(self, *steps: Call, after: str = "") -> Task[list[Row]]:
        """Run statements with their parameters, and then the SQL `after`, in one round trip."""
        assert not self._committed, "the transaction has ended"
        before, self._opening = self._opening, ""
        return self._connection.run(*steps, before=before, after=after)


Work = Callable[[S], Awaitable[T]]


async def in_transaction(connection: Connection, work: Work[Transaction, T]) -> T:
    """Run `work` in one transaction and commit; any exception rolls back."""
    transaction = Transaction(connection)
    try:
        result = await work(transaction)
        await transaction.commit()
    except BaseException:
        if connection.can_roll_back:
            with suppress(DatabaseError):
                await connection.execute("ROLLBACK")
        raise
    return result


async def without_transaction(connection: Connection, work: Work[Statements, T]) -> T:
    """Run `work`; each of its statements commits by itself."""
    try:
        return await work(Statements(connection))
    except ConnectionLost as error:
        raise _unknown_outcome(error) from error


def _unknown_outcome(error: ConnectionLost) -> Interrupted:
    return Interrupted(f"outcome unknown, {error}")
