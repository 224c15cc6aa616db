"""One PostgreSQL connection: opened within a time limit, set up, and closed on the first sign of trouble.

Failures come out as the exceptions of solisync.errors, which tell those that may be retried from those that may not.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import psycopg2
from psycopg2 import extensions
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.error import ConnectionDone

from ..errors import (
    ConnectionFailed,
    ConnectionLost,
    DatabaseError,
    Declined,
    Outdated,
    TimedOut,
    TransactionAborted,
    Unavailable,
)
from .dsn import each_address, each_host, server_of
from .libpq import LibpqConnection, Parameters
from .opening import NOT_PREPARED, REMEDY, ServerIdentity, connect_and_set_up, reason
from .staggered import staggered_race
from .statement import Call, Row, Statement
from .times import TIMES, PoolTimes

# SQLSTATEs after which a fresh connection may be the cure: the server was demoted; a migration changed what a prepared
# statement returns; a statement could not be prepared, because it didn't fit the schema of then.
_READ_ONLY, _RESULT_CHANGED = "25006", "0A000"
_LOST = frozenset({"57P01", "57P02", "57P03"})  # shutting down, crashed, starting up; class 08 as well
_DEADLOCK_OR_SERIALIZATION = frozenset({"40P01", "40001"})
_UNAVAILABLE = "SS503"  # raised by our own functions, in migrations/
_NO_RESOURCES = "53"  # a class: the disk is full, there is no memory
_TIMED_OUT = frozenset({"55P03", "57014"})  # a lock; a statement, which may also have been cancelled by somebody


class Connection:
    """A connection to a `server` that runs one statement at a time.

    `cancelled` becomes true when a caller tries to cancel a statement of a connection that is shielded; whoever lends
    the connection resets it.
    """

    def __init__(
        self, connection: LibpqConnection, server: ServerIdentity, *, prepared: bool, times: PoolTimes
    ) -> None:
        self.cancelled = False
        self.server = server
        self._libpq = connection
        self._prepared = prepared
        self._times = times
        self._opened = connection.reactor.seconds()
        reported = map(connection.parameter, ("in_hot_standby", "default_transaction_read_only"))
        self._was_read_only = "on" in reported

    @classmethod
    async def open(
        cls,
        reactor: ReactorBase,
        dsn: str,
        *,
        statements: tuple[Statement, ...] = (),
        bounded: bool = True,
        times: PoolTimes = TIMES,
    ) -> "Connection":
        """Connect, set the server's timeouts (unless not `bounded`) and prepare those `statements` that fit the schema.

        Of several hosts, and of several addresses of one, the first that answers as the DSN wants it is taken. Raises
        ConnectionFailed when none does, each within `times.connect`.
        """

        async def reach(host: str) -> Connection:
            addresses = await each_address(reactor, host)
            attempts = [partial(cls._open, reactor, address, statements, bounded, times) for address in addresses]
            return (await staggered_race(reactor, attempts, times.head_start))[1]

        hosts = [partial(reach, host) for host in each_host(dsn)]
        return (await staggered_race(reactor, hosts, times.head_start))[1]

    @classmethod
    async def _open(
        cls, reactor: ReactorBase, dsn: str, statements: tuple[Statement, ...], bounded: bool, times: PoolTimes
    ) -> "Connection":
        opening = Deferred.fromCoroutine(connect_and_set_up(reactor, dsn, statements, bounded))
        try:
            connection, server = await opening.addTimeout(times.connect, reactor)
        except TimeoutError:
            raise ConnectionFailed(_failure(f"no answer within {times.connect:g} s", dsn)) from None
        except (psycopg2.Error, ConnectionDone, ValueError, OSError) as error:
            raise ConnectionFailed(_failure(str(error), dsn)) from None
        return cls(connection, server, prepared=bool(statements), times=times)

    def run(self, *steps: Call, before: str = "", after: str = "") -> Coroutine[Any, Any, list[Row]]:
        """Run statements, with SQL before and after them, in one round trip; returns the rows of the last."""
        if self._prepared and all(statement.prepared for statement, *_ in steps):
            sql = "; ".join(statement.execution for statement, *_ in steps)
            return self.execute(before + sql + after, [value for _, *values in steps for value in values])
        sql = "; ".join(statement.inline(number) for number, (statement, *_) in enumerate(steps))
        named = {
            f"{number}.{position}": value
            for number, (_, *values) in enumerate(steps)
            for position, value in enumerate(values, 1)
        }
        return self.execute(before + sql + after, named)

    async def execute(self, sql: str, parameters: Parameters = None) -> list[Row]:
        """Run any SQL, where "%" is "%%" if there are parameters, and return the rows of its last statement.

        Raises TransactionAborted for a failure that left nothing behind, so that the work may be run again; Outdated
        when other connections would fail alike; TimedOut when the server's limits ended it; Declined when the server is
        read-only or has no room, or when a pooler forgets what was prepared; Unavailable when a function of the schema
        declines it for now; ConnectionLost when the connection ended meanwhile (only the caller knows whether a commit
        was on its way); else DatabaseError.
        """
        try:
            return await self._libpq.run(sql, parameters)
        except (psycopg2.Error, ConnectionDone) as error:
            code = getattr(error, "pgcode", None) or ""
            if code in _LOST or code.startswith("08") or self._libpq.disconnected:
                self.close()
                raise ConnectionLost(f"connection lost: {reason(error)}".strip()) from error
            if self._is_outdated(code):
                raise Outdated(reason(error)) from error
            if code == _UNAVAILABLE:
                raise Unavailable from error
            if code == NOT_PREPARED and self.server.pooled:
                raise Declined(reason(error) + REMEDY) from error
            if code == _READ_ONLY or code.startswith(_NO_RESOURCES):
                raise Declined(reason(error)) from error
            if code in _DEADLOCK_OR_SERIALIZATION:
                raise TransactionAborted(reason(error)) from error
            if code in _TIMED_OUT:
                raise TimedOut(reason(error)) from error
            raise DatabaseError(reason(error)) from error

    async def listen(self, channel: str, hear: Callable[[str], None]) -> None:
        """Call `hear` with the payload of each notification on the channel; raises what `execute` raises."""
        self._libpq.observe(hear)
        await self.execute(f"LISTEN {channel}")

    def _is_outdated(self, code: str) -> bool:
        """Whether a connection that is made now may do better; a young one would not, unless the schema has changed."""
        age = self._libpq.reactor.seconds() - self._opened
        if code == _READ_ONLY:
            return not self._was_read_only or not 0 <= age < self._times.settled
        return code == _RESULT_CHANGED or (code == NOT_PREPARED and not 0 <= age < self._times.misfit)

    @property
    def can_commit(self) -> bool:
        """Whether a transaction is open and no statement in it has failed: else COMMIT would answer with a rollback."""
        return self._is_in(extensions.TRANSACTION_STATUS_INTRANS)

    @property
    def can_roll_back(self) -> bool:
        """Whether a transaction is open and no statement is running."""
        return self._is_in(extensions.TRANSACTION_STATUS_INTRANS, extensions.TRANSACTION_STATUS_INERROR)

    @property
    def usable(self) -> bool:
        """Whether the next borrower gets a clean connection: open, no statement running, no transaction left open."""
        return self._is_in(extensions.TRANSACTION_STATUS_IDLE)

    def still_usable(self) -> bool:
        """Whether the connection is `usable` after a while in the pool: the server may have closed it just now."""
        self._libpq.catch_up()
        return self.usable

    def _is_in(self, *statuses: int) -> bool:
        return not self._libpq.disconnected and self._libpq.transaction_status in statuses

    @property
    def encrypted(self) -> bool:
        """Whether TLS protects the connection."""
        return self._libpq.encrypted

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is closed, by either side."""
        self._libpq.on_lost = callback

    def shield(self) -> None:
        """From now on a running statement can't be cancelled: an attempt only sets `cancelled`."""
        self._libpq.on_cancel = self._set_cancelled

    def _set_cancelled(self) -> None:
        self.cancelled = True

    @property
    def running(self) -> bool:
        """Whether a statement is running."""
        return self._libpq.running

    def abandon(self, error: ConnectionLost) -> None:
        """Let the running statement fail with `error` now, and close the connection when the server has ended it."""
        self._libpq.abandon(error)

    def close(self) -> None:
        """Close the connection now; a statement that is running fails with ConnectionLost."""
        self._libpq.close()


def _failure(text: str, dsn: str) -> str:
    """Why no connection was made, in libpq's words, without the indented lines of advice ("Is the server …?").

    libpq names the server in most of its messages; the others get its name here.
    """
    lines = [line for line in text.splitlines() if not line.startswith("\t")]
    shown = " ".join(" ".join(lines).split())
    if shown.startswith("connection to server"):
        return shown
    return f"connection to server {server_of(dsn) or 'by default'} failed: {shown}"
