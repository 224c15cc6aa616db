"""`transact` and `run`: work on the database, over a pool of connections, run again where that is safe.

When a client hangs up, Twisted cancels its handler. Work that has begun runs to its end all the same: a cancelled
statement would cost its connection, and leave the outcome of a commit unknown. If the work succeeds, the handler gets
its result, so that it can publish what has been committed, and the next call of `transact` or `run` raises
CancelledError. If the work fails, the handler gets CancelledError immediately.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from contextvars import ContextVar
from typing import Any, Concatenate, ParamSpec, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ..errors import Declined, Interrupted, Outdated, Refused, TimedOut, TransactionAborted, Unavailable
from . import TIMES, PoolTimes
from .connection import Connection
from .opening import open_connection
from .pool import Pool
from .statement import Statement
from .transaction import Statements, Transaction, Work, in_transaction, without_transaction

ATTEMPTS = 3

# Whether the caller was cancelled during work that succeeded. Work that several callers share must not inherit it:
# process.shielded.detached begins such work.
_cancelled: ContextVar[bool] = ContextVar("cancelled", default=False)

P = ParamSpec("P")
S = TypeVar("S", bound=Statements)
T = TypeVar("T")
Attempt = Callable[[Connection, Work[S, T]], Awaitable[T]]


class Database:
    """Runs work on the connections of `pool`, of which there are `size`, with `statements` prepared."""

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
    async def connection(self) -> AsyncIterator[Connection]:
        """Open a connection beside the pool, for work that no request waits for; raises ConnectionFailed."""
        if self._dsn is None:
            raise Unavailable
        with closing(await open_connection(self._reactor, self._dsn)) as opened:
            yield opened

    async def close(self, seconds: float) -> None:
        """Decline new work, give running work up to `seconds` to end, then close every connection."""
        await self.pool.close(seconds)

    # Fast path: these two, and what they call to send statements, return coroutines instead of awaiting them, 1,600
    # instructions for each, see docs/performance.md

    def transact(
        self, work: Callable[Concatenate[Transaction, P], Awaitable[T]], *arguments: P.args, **options: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """Run `work(transaction, …)` in one transaction, commit, and return what it returned.

        Any exception rolls back. After a deadlock, or when the connection is lost before the commit was sent, the work
        is run again after a pause, three times in all; after a first timeout of a lock or a statement, once more. So it
        must not keep state. Raises Unavailable if no connection comes free in time, DatabaseError if the database fails
        or the outcome is unknown.
        """
        return self._run(in_transaction, lambda transaction: work(transaction, *arguments, **options))

    def run(
        self, work: Callable[Concatenate[Statements, P], Awaitable[T]], *arguments: P.args, **options: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """Run `work(statements, …)`: each statement commits by itself, so that a single one takes one round trip.

        After a deadlock or a timeout, `transact` says when the work is run again; then its earlier statements are
        committed already. Raises what `transact` raises; if the connection is lost, the outcome is always unknown.
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
                return await self._run_on(connection, attempt, work)
            except (TransactionAborted, TimedOut) as error:
                # after a timeout once more only: three of them last as long as the request may
                if not left or (isinstance(error, TimedOut) and left < ATTEMPTS - 1):
                    raise
                self._log.info("a transaction is run again: {error}", error=error)
                await deferLater(self._reactor, self.pool.times.again)
        raise AssertionError("unreachable")

    async def _run_on(self, connection: Connection, attempt: Attempt[S, T], work: Work[S, T]) -> T:
        try:
            result = await attempt(connection, work)
        except Exception as error:
            if isinstance(error, Outdated):
                self.pool.replace_all(connection)
            if connection.cancelled:
                if isinstance(error, Interrupted | TimedOut | Declined):
                    self._log.error("database work failed after its client had gone: {error}", error=error)
                elif not isinstance(error, Refused | TransactionAborted):
                    self._log.failure("database work failed after its client had gone")
                raise CancelledError from error
            if isinstance(error, TransactionAborted) and self.pool.is_overdue(connection):
                raise Interrupted(f"the transaction took more than {self.pool.times.work:g} s") from error
            raise
        else:
            if connection.cancelled:
                _cancelled.set(True)
            return result
        finally:
            self.pool.give_back(connection)
