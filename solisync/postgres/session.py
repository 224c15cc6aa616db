"""One PostgreSQL connection: the only module that knows txpostgres.

txpostgres.Connection connects; everything a long-lived service needs around it is here: connecting within a bound,
running statements, noticing that an idle connection died, closing without leaving a stale reader in the reactor, and
telling failures that may be retried from those that may not.
"""

import os
import select
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg2
from psycopg2 import extensions
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure
from txpostgres import txpostgres

from ..errors import ConnectionFailed, ConnectionLost, DatabaseError, Outdated, TransactionAborted
from .dsn import each_address, each_host, with_defaults
from .staggered import staggered_race
from .statement import Row, Statement, Step

CONNECT_SECONDS = 3.0  # for each address of each host
SETTLED_SECONDS = 1.0  # how long a connection is taken to be as good as a new one

# SQLSTATEs after which a fresh connection is the cure: the server was demoted; a migration changed what a prepared
# statement returns.
_READ_ONLY, _RESULT_CHANGED = "25006", "0A000"
_LOST = frozenset({"57P01", "57P02", "57P03"})  # shutting down, crashed, starting up; class 08 as well
_DEADLOCK_OR_SERIALIZATION = frozenset({"40P01", "40001"})

# Times come in the zone of the session, and go out as they came.
_UTC = "SET timezone = 'UTC'"

# Standard server-side bounds of every session: a client that is gone must not keep locks.
_TIMEOUTS = "SET statement_timeout = '5s'; SET lock_timeout = '4s'; SET idle_in_transaction_session_timeout = '10s'"


class _Uncancellable(Deferred[Any]):
    """What is to come of a statement that its caller can't stop: `cancel` is somebody else's function instead."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        super().__init__()
        self.cancel = cancel  # type: ignore[method-assign]


class _Connection(txpostgres.Connection):  # type: ignore[misc]
    """txpostgres' connection, which is closed when in doubt, and which runs statements in a way of its own.

    A cursor of txpostgres' takes the place of its connection in the reactor for every statement, and passes on what
    came of it a turn of the reactor later: that is half of what a statement costs. And libpq may close its socket
    whenever it is called. A registration left behind would make the reactor believe the next socket of that number to
    be watched already, so what it watches is a descriptor of ours for the same socket.
    """

    reactor: Any
    on_lost: Callable[[], None] | None = None
    on_cancel: Callable[[], None] | None = None
    _descriptor = -1  # from when it is connected until it is closed
    _cursor: Any = None  # of the statement that runs
    _outcome: Deferred[list[Row]] | None = None
    _sending = False
    _ended = False

    # Connecting: txpostgres' way, but for errors and cancellation.

    def connect(self, dsn: str) -> Deferred[None]:
        connecting: Deferred[Any] = super().connect(dsn)
        return connecting.addCallback(self._connected)

    def _connected(self, _: object) -> None:
        self.reactor.removeReader(self)
        self._descriptor = os.dup(self._connection.fileno())
        self._pending = select.poll()
        self._pending.register(self._descriptor, select.POLLIN)
        self.reactor.addReader(self)

    def poll(self) -> Deferred[Any]:
        # Cancelling txpostgres' own Deferred asks the server to cancel, over a connection that blocks.
        outcome: Deferred[Any] = Deferred()
        polling: Deferred[Any] = super().poll()
        polling.addBoth(lambda result: None if outcome.called else outcome.callback(result))
        return outcome

    def continuePolling(self, swallowErrors: bool = False) -> None:
        try:
            # libpq may change its socket while it connects. There can still be a registration: an event for the former
            # owner of this number makes a connection that waits to write read instead.
            self.reactor.removeReader(self)
            self.reactor.removeWriter(self)
            super().continuePolling(swallowErrors)
        except (psycopg2.Error, ValueError, OSError):  # libpq wants a socket to be watched that it has lost
            self.close()

    # Running a statement.

    def run(self, sql: str, parameters: Sequence[object] | Mapping[str, object] | None) -> Deferred[list[Row]]:
        """Send SQL; fires with the rows of the last statement in it."""
        self._cursor = self._connection.cursor()
        self._cursor.execute(sql, parameters)
        # To cancel a plain Deferred leaves a connection in mid-statement, which is not `usable`.
        outcome = self._outcome = Deferred() if self.on_cancel is None else _Uncancellable(self.on_cancel)
        self._proceed()
        return outcome

    def _proceed(self) -> None:
        rows: list[Row] | Failure
        try:
            state = self._connection.poll()
            if state != extensions.POLL_OK:
                self._watch(sending=state == extensions.POLL_WRITE)
                return
            rows = self._cursor.fetchall() if self._cursor.description else []
        except Exception:  # also what psycopg2 has no Python value for, such as dates far away
            rows = Failure()
        self._watch(sending=False)
        self._settle(rows)  # at last: it may begin the next statement

    def _watch(self, *, sending: bool) -> None:
        """Wait until the server takes more of a statement, or else for what it says, which it may do too early."""
        if sending != self._sending:
            self._sending = sending
            (self.reactor.removeReader if sending else self.reactor.removeWriter)(self)
            (self.reactor.addWriter if sending else self.reactor.addReader)(self)

    def _settle(self, result: list[Row] | Failure) -> None:
        outcome, self._outcome, self._cursor = self._outcome, None, None
        if outcome is not None:
            outcome.callback(result)

    # What the reactor calls.

    def fileno(self) -> int:
        return self._descriptor if self._descriptor >= 0 else int(super().fileno())

    def doRead(self) -> None:
        if self._outcome is not None:
            self._proceed()
        elif self._descriptor >= 0:
            self._hear()
        else:
            super(txpostgres.Connection, self).doRead()  # Connection's would watch a socket that may be gone

    def doWrite(self) -> None:
        if self._outcome is not None:
            self._proceed()
        else:
            super().doWrite()

    def connectionLost(self, reason: Failure) -> None:
        if self._descriptor < 0:
            super().connectionLost(reason)
            return
        if self._outcome is not None:
            self._proceed()  # what has arrived may be all there is to hear
        self.close()

    # While nothing runs.

    def _hear(self) -> None:
        try:
            self._connection.notices.clear()
            self._connection.poll()
        except psycopg2.Error:  # the server hung up
            self.close()
        else:
            # to libpq even the FATAL of a server that is about to hang up is a notice while nothing runs
            if self._connection.notices or self.disconnected:
                self.close()

    def catch_up(self) -> None:
        """Read what has arrived since the reactor last looked, above all that the server hung up."""
        while not self.disconnected and self._pending.poll(0):
            self._hear()

    @property
    def disconnected(self) -> bool:
        """Whether there is no socket any more: psycopg2 may learn that later than libpq."""
        return bool(self._connection.closed) or self._connection.fileno() < 0

    def close(self) -> None:
        # Also for a connection that libpq has found broken: it holds its socket, and its place in the pool, until it
        # is closed.
        if self._ended:
            return
        self._ended = True
        try:
            self.reactor.removeReader(self)
            self.reactor.removeWriter(self)
        finally:  # whatever happens, whoever waits is told and the pool makes another
            self._connection.close()
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            super().close()
            self._settle(Failure(ConnectionDone()))
            if self.on_lost is not None:
                self.on_lost()


class Session:
    """A connection that runs one statement at a time; closed on the first sign that it can't be trusted."""

    def __init__(self, connection: _Connection, *, prepared: bool) -> None:
        self._connection = connection
        self._prepared = prepared
        self._opened = connection.reactor.seconds()
        reported = map(connection.get_parameter_status, ("in_hot_standby", "default_transaction_read_only"))
        self._was_read_only = "on" in reported

    @classmethod
    async def open(
        cls,
        reactor: ReactorBase,
        dsn: str,
        *,
        statements: tuple[Statement, ...] = (),
        bounded: bool = True,
    ) -> "Session":
        """Connect, set the session's timeouts (unless not `bounded`) and prepare `statements`.

        Of several hosts, and of several addresses of one, the first that answers as the DSN wants it is taken. Raises
        ConnectionFailed when none does, each within CONNECT_SECONDS: libpq ignores connect_timeout when it connects
        asynchronously.
        """

        async def reach(host: str) -> Session:
            places = await each_address(reactor, host)
            openings = [partial(cls._open, reactor, place, statements, bounded) for place in places]
            return (await staggered_race(reactor, openings))[1]

        return (await staggered_race(reactor, [partial(reach, host) for host in each_host(dsn)]))[1]

    @classmethod
    async def _open(cls, reactor: ReactorBase, dsn: str, statements: tuple[Statement, ...], bounded: bool) -> "Session":
        connection = _Connection(reactor)
        # txpostgres makes the socket before it first waits, so the timer always finds it
        timer = reactor.callLater(CONNECT_SECONDS, connection.close)
        try:
            await connection.connect(with_defaults(dsn))
            setup = [_UTC, *([_TIMEOUTS] if bounded else [])]
            setup += [statement.preparation for statement in statements]
            await connection.run("; ".join(setup), None)
        except BaseException as error:
            if connection.pollable() is not None:
                connection.close()
            if not isinstance(error, psycopg2.Error | ConnectionDone | ValueError | OSError):
                raise  # most likely it was cancelled, because another host was quicker
            reason = _failure(error) if timer.active() else f"no answer within {CONNECT_SECONDS:g} s"
            raise ConnectionFailed(reason) from None
        finally:
            if timer.active():
                timer.cancel()
        return cls(connection, prepared=bool(statements))

    async def run(self, *steps: Step, before: str = "", after: str = "") -> list[Row]:
        """Run statements, with SQL before and after them, in one round trip; returns the rows of the last."""
        if self._prepared:
            sql = "; ".join(statement.execution for statement, *_ in steps)
            return await self.execute(before + sql + after, [value for _, *values in steps for value in values])
        sql = "; ".join(statement.inline(number) for number, (statement, *_) in enumerate(steps))
        named = {
            f"{number}.{position}": value
            for number, (_, *values) in enumerate(steps)
            for position, value in enumerate(values, 1)
        }
        return await self.execute(before + sql + after, named)

    async def execute(self, sql: str, parameters: Sequence[object] | Mapping[str, object] | None = None) -> list[Row]:
        """Run any SQL, where "%" is "%%" if there are parameters, and return the rows of its last statement.

        Raises TransactionAborted for what left nothing behind and may be run again, Outdated when that goes for what
        other connections run too, ConnectionLost when the connection ended meanwhile (only the caller knows whether a
        commit was on its way), else DatabaseError.
        """
        try:
            return await self._connection.run(sql, parameters)
        except (psycopg2.Error, ConnectionDone) as error:
            code = getattr(error, "pgcode", None) or ""
            if code in _LOST or code.startswith("08") or self._connection.disconnected:
                self.close()
                raise ConnectionLost(f"connection lost: {_reason(error)}".strip()) from error
            if code in (_READ_ONLY, _RESULT_CHANGED) and self._is_news(code):
                raise Outdated(_reason(error)) from error
            if code in _DEADLOCK_OR_SERIALIZATION:
                raise TransactionAborted(_reason(error)) from error
            raise DatabaseError(_reason(error)) from error

    def _is_news(self, code: str) -> bool:
        """Whether this may have become so since we connected: else a new connection would hear the same."""
        age = self._connection.reactor.seconds() - self._opened
        return not 0 <= age < SETTLED_SECONDS or (code == _READ_ONLY and not self._was_read_only)

    # These three ask libpq, not the server.

    @property
    def can_commit(self) -> bool:
        """Whether a transaction is open and no statement in it has failed: else COMMIT would answer with a rollback."""
        return self._is(extensions.TRANSACTION_STATUS_INTRANS)

    @property
    def can_roll_back(self) -> bool:
        """Whether a transaction is open and nothing is running."""
        return self._is(extensions.TRANSACTION_STATUS_INTRANS, extensions.TRANSACTION_STATUS_INERROR)

    @property
    def usable(self) -> bool:
        """Whether the next user gets a clean connection: open, nothing running, no transaction left behind."""
        return self._is(extensions.TRANSACTION_STATUS_IDLE)

    def still_usable(self) -> bool:
        """Whether it is `usable` after a while in the pool: the server may have closed it this very moment."""
        self._connection.catch_up()
        return self.usable

    def _is(self, *statuses: int) -> bool:
        return not self._connection.disconnected and self._connection.get_transaction_status() in statuses

    @property
    def encrypted(self) -> bool:
        """Whether TLS protects the connection."""
        return bool(self._connection._connection.info.ssl_in_use)

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is closed, by whichever side."""
        self._connection.on_lost = callback

    def when_cancelled(self, callback: Callable[[], None]) -> None:
        """From now on a statement that runs can't be cancelled; whenever its caller tries, call `callback`."""
        self._connection.on_cancel = callback

    def close(self) -> None:
        """Close the connection now; a statement that is running fails with ConnectionLost."""
        self._connection.close()


def _failure(error: Exception) -> str:
    """Why no connection was made, in libpq's words, without the hints indented below them ("Is the server …?")."""
    said = [line for line in str(error).splitlines() if not line.startswith("\t")]
    return " ".join(" ".join(said).split())


def _reason(error: Exception) -> str:
    """What is wrong, in the server's words, but only the first: those below it show statements and rows, and so hashes.

    An error that the server had no part in has none of that.
    """
    diagnostics = getattr(error, "diag", None)
    return getattr(diagnostics, "message_primary", None) or str(error).strip()
