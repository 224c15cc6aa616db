"""`transact` and `run`: work on the database, on connections of a pool, retried where that is safe.

When a client hangs up, Twisted cancels its handler. Work that has begun still runs to its end: a cancelled statement
would cost its connection, and leave the outcome of a commit unknown. If the work succeeds, the handler gets its result
and can publish the committed changes; its next call of `transact` or `run` raises CancelledError. If the work fails,
the handler gets CancelledError immediately.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from contextvars import ContextVar
from typing import Concatenate, ParamSpec, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ..errors import Declined, Interrupted, Outdated, Refused, TimedOut, TransactionAborted, Unavailable
from ..process.tasks import Task
from . import TIMES, PoolTimes
from .connection import Connection
from .opening import open_connection
from .pool import Pool
from .statement import Statement
from .transaction import Statements, Transaction, Work, in_transaction, without_transaction

ATTEMPTS = 3

# Whether the caller was cancelled during work that succeeded. Work that several callers share must not inherit this
# variable, so process.tasks.detached begins such work.
_cancelled: ContextVar[bool] = ContextVar("cancelled", default=False)

P = ParamSpec("P")
S = TypeVar("S", bound=Statements)
T = TypeVar("T")
Attempt = Callable[[Connection, Work[S, T]], Awaitable[T]]


class Database:
    """Runs work on the connections of `pool`: `size` connections with `statements` prepared."""

    _log = Logger()

    def __init__(
        self, *, reactor: ReactorBase, size: int, statements: tuple[Statement, ...], times: PoolTimes = TIMES
    ) -> None:
        self.pool = Pool(reactor=reactor, size=size, statements=statements, times=times)
        self._reactor = reactor
        self._dsn: str | None = None

    def open(self, dsn: str) -> None:
        """Begin to connect; work waits for the first connection."""
        self._dsn = dsn
        self.pool.open(dsn)

    @asynccontextmanager
    async def connection(self, *, bounded: bool = True) -> AsyncIterator[Connection]:
        """Open a connection outside the pool, for work that no request waits for; raises ConnectionFailed.

        The server limits the time of its statements if `bounded`.
        """
        if self._dsn is None:
            raise Unavailable
        with closing(await open_connection(self._reactor, self._dsn, bounded=bounded)) as opened:
            yield opened

    async def close(self, seconds: float) -> None:
        """Decline new work, wait up to `seconds` for running work, then close every connection."""
        await self.pool.close(seconds)

    # Fast path: these two, and what they call to send statements, return coroutines instead of awaiting them, 1,600
    # instructions for each, see docs/performance.md

    def transact(
        self, work: Callable[Concatenate[Transaction, P], Awaitable[T]], *arguments: P.args, **options: P.kwargs
    ) -> Task[T]:
        """Run `work(transaction, …)` in one transaction, commit, and return its result.

        Any exception rolls back. After a deadlock, or a connection lost before the commit, `work` runs again after a
        pause, up to three times in all; after a timeout of a lock or statement, only once more. So `work` must not
        keep state. Raises Unavailable if no connection is free in time, DatabaseError if the database fails or the
        outcome is unknown.
        """
        return self._run(in_transaction, lambda transaction: work(transaction, *arguments, **options))

    def run(
        self, work: Callable[Concatenate[Statements, P], Awaitable[T]], *arguments: P.args, **options: P.kwargs
    ) -> Task[T]:
        """Run `work(statements, …)`: each statement commits by itself, so that a single one takes one round trip.

        After a deadlock or a timeout, `work` is run again as in `transact`; its earlier statements are then committed
        already. Raises the same errors as `transact`. If the connection is lost, the outcome is always unknown.
        """
        return self._run(without_transaction, lambda statements: work(statements, *arguments, **options))

    async def _run(self, attempt: Attempt[S, T], work: Work[S, T]) -> T:
        if _cancelled.get():
            _cancelled.set(False)
            raise CancelledError
        for left in reversed(range(ATTEMPTS)):
            lent = self.pool.borrow()
            connection = await lent if isinstance(lent, Deferred) else lent
            try:
                result = await attempt(connection, work)
            except Exception as error:
                self._check_repeatable(error, connection, left)
            else:
                if connection.cancelled:
                    _cancelled.set(True)
                return result
            finally:
                self.pool.give_back(connection)
            await deferLater(self._reactor, self.pool.times.again)
        raise AssertionError("unreachable")

    def _check_repeatable(self, error: Exception, connection: Connection, left: int) -> None:
        """Raise the exception that the caller of work gets for `error`, unless the work may run again."""
        if isinstance(error, Outdated):
            self.pool.replace_all(connection)
        if connection.cancelled:
            if isinstance(error, Interrupted | TimedOut | Declined):
                self._log.error("database work failed after its client had disconnected: {error}", error=error)
            elif not isinstance(error, Refused | TransactionAborted):
                self._log.failure("database work failed after its client had disconnected")
            raise CancelledError from error
        if isinstance(error, TransactionAborted) and self.pool.is_overdue(connection):
            raise Interrupted(f"the transaction took more than {self.pool.times.work:g} s") from error
        # After a timeout only once more: three timeouts would take as long as the request may.
        again = left > 0 if isinstance(error, TransactionAborted) else left == ATTEMPTS - 1
        if not (again and isinstance(error, TransactionAborted | TimedOut)):
            raise error
        self._log.info("retrying a transaction: {error}", error=error)
