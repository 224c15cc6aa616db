"""A PostgreSQL connection in the reactor: it runs statements, and closes on any error of the connection.

No other module uses txpostgres.
"""

import os
import select
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import psycopg2
from psycopg2 import extensions
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from txpostgres import txpostgres

from ..errors import ConnectionLost, Outdated
from ..process.tasks import Task
from . import PoolTimes
from .failures import LOST, NOT_PREPARED, READ_ONLY, RESULT_CHANGED, failure, reason
from .statement import Call, Row

# txpostgres forwards unknown attributes to psycopg2's connection, and Python looks up all attributes of such a class in
# a slower way. Nothing here uses it.
# Fast path: without this line, a statement takes 20,000 instructions more, see docs/performance.md
del txpostgres._PollingMixin.__getattr__

Parameters = Sequence[object] | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The server at the other end of a connection.

    `name` is the host and port of the DSN, followed by the address that the server reports if that differs. `instance`
    is unique for each start of each server. `misplaced` is the reason if the role doesn't work in the schema public.
    `pooled` is True if there is a pooler in between; `lacking` then names the settings that the role needs and doesn't
    have.
    """

    name: str
    instance: str
    misplaced: str
    pooled: bool
    lacking: str


class _Uncancellable(Deferred[Any]):
    """The result of a statement that continues if its caller is cancelled; `cancel` only calls a function.

    Fast path: replaces a second Deferred for each statement, a quarter of what a statement costs, see
    docs/performance.md.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        super().__init__()
        self.cancel = cancel  # type: ignore[method-assign]


class Connection(txpostgres.Connection):
    """A connection of txpostgres to a `server` that runs one statement at a time; `opening.open_connection` makes it.

    Failures become the exceptions of solisync.errors, which distinguish statements that may be retried. Statements can
    be cancelled unless the connection is shielded: then cancelling only sets `cancelled`, which the pool resets.

    `connect` of txpostgres has no time limit, because libpq ignores connect_timeout when it connects
    asynchronously. Afterwards the reactor watches a duplicate of the socket's descriptor, because libpq may close the
    socket inside any call. The number of a closed socket would stay registered, and the reactor would not watch the
    next socket of that number.
    """

    _log = Logger()

    server: ServerIdentity
    libpq: Any  # psycopg2's connection, once it is connected

    def __init__(self, reactor: Any, times: PoolTimes) -> None:
        super().__init__(reactor)
        self.cancelled = False
        self._times = times
        self._prepared = False  # whether the statements of the service are prepared
        self._shielded = False
        self._on_lost: Callable[[], None] | None = None
        self._hear: Callable[[str], None] | None = None
        self._cursor: Any = None  # of the statement that is running
        self._outcome: Deferred[list[Row]] | None = None
        self._sending = False
        self._descriptor = -1  # while connecting, and when closed

    def poll(self) -> Deferred[Self]:
        """Poll until connected.

        Cancelling txpostgres' own Deferred would ask the server to cancel, over a second connection, which blocks the
        reactor. Cancelling this one only fails it; then the caller closes the connection.
        """
        outcome: Deferred[Self] = Deferred()
        polling = super().poll().addCallback(self._watch_duplicate)
        polling.addBoth(lambda result: None if outcome.called else outcome.callback(result))
        return outcome

    def continuePolling(self, swallowErrors: bool = False) -> None:
        """Poll once while connecting.

        libpq may open another socket while it connects, and an event for the previous socket of that number could also
        have left a registration of the other kind. txpostgres keeps both. It lets errors of the registration reach the
        reactor, which then drops the connection without an error.
        """
        try:
            self.reactor.removeReader(self)
            self.reactor.removeWriter(self)
            super().continuePolling(swallowErrors)
        except (psycopg2.Error, ValueError, OSError):  # libpq has lost the socket
            self.close()

    def _watch_duplicate(self, connected: Self) -> Self:
        self.reactor.removeReader(self)
        self.reactor.removeWriter(self)
        self.libpq = self.pollable()
        reported = map(self.libpq.get_parameter_status, ("in_hot_standby", "default_transaction_read_only"))
        self._was_read_only = "on" in reported
        self._descriptor = os.dup(self.libpq.fileno())
        self._input = select.poll()
        self._input.register(self._descriptor, select.POLLIN)
        return connected

    def cancel(self, d: Deferred[Any]) -> None:
        """Refuse: txpostgres would block the reactor, see `poll`."""
        raise NotImplementedError("a statement runs to its end")

    def begin(self, server: ServerIdentity, *, prepared: bool) -> None:
        """Complete the opening: set the `server`, and whether the statements of the service are `prepared`."""
        self.server = server
        self._prepared = prepared
        self._opened = self.reactor.seconds()

    def run(self, *steps: Call, before: str = "", after: str = "") -> Task[list[Row]]:
        """Run statements, with SQL before and after them, in one round trip; return the rows of the last."""
        if self._prepared and all(step[0].prepared for step in steps):
            sql = "; ".join(step[0].execution for step in steps)
            return self.execute(before + sql + after, [value for step in steps for value in step[1:]])
        sql = "; ".join(statement.inline(number) for number, (statement, *_) in enumerate(steps))
        named = {
            f"{number}.{position}": value
            for number, (_, *values) in enumerate(steps)
            for position, value in enumerate(values, 1)
        }
        return self.execute(before + sql + after, named)

    async def execute(self, sql: str, parameters: Parameters = None) -> list[Row]:
        """Run any SQL and return the rows of its last statement; with parameters, write "%" as "%%".

        Raises ConnectionLost if the connection ends before the result (only the caller knows whether that was a
        commit); Outdated if a new connection may do better; otherwise the exception that `failures.failure` returns.
        """
        try:
            return await self.send(sql, parameters)
        except (psycopg2.Error, ConnectionDone) as error:
            code = getattr(error, "pgcode", None) or ""
            if code in LOST or code.startswith("08") or self._disconnected:
                self.close()
                raise ConnectionLost(f"connection lost: {reason(error)}".strip()) from error
            if self._is_outdated(code):
                raise Outdated(reason(error)) from error
            raise failure(error, code, pooled=self.server.pooled) from error

    def send(self, sql: str, parameters: Parameters = None) -> Deferred[list[Row]]:
        """Like `execute`, but fails with psycopg2.Error or ConnectionDone.

        Cancelling it leaves the connection in the middle of a statement, and so unusable, unless it is shielded.
        """
        self._cursor = self.libpq.cursor()
        self._cursor.execute(sql, parameters)
        outcome = self._outcome = _Uncancellable(self._set_cancelled) if self._shielded else Deferred()
        self._proceed()
        return outcome

    async def listen(self, channel: str, hear: Callable[[str], None]) -> None:
        """Call `hear` with the payload of each notification on the channel; `hear` must not use the connection.

        Raises the same errors as `execute`.
        """
        self._hear = hear
        await self.execute(f"LISTEN {channel}")

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, when either side closes the connection."""
        self._on_lost = callback

    def shield(self) -> None:
        """Make statements uncancellable from now on: cancelling one only sets `cancelled`."""
        self._shielded = True

    def _set_cancelled(self) -> None:
        self.cancelled = True

    def _is_outdated(self, code: str) -> bool:
        """Whether a new connection may do better; if this one is young, it may only after a change of the schema."""
        age = self.reactor.seconds() - self._opened
        if code == READ_ONLY:
            return not self._was_read_only or not 0 <= age < self._times.settled
        return code == RESULT_CHANGED or (code == NOT_PREPARED and not 0 <= age < self._times.misfit)

    @property
    def can_commit(self) -> bool:
        """Whether a transaction is open and no statement in it has failed; after a failure, COMMIT rolls back."""
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
        """Whether the connection is still `usable` after a time in the pool, in which the server may have closed it."""
        while not self._disconnected and self._input.poll(0):
            self._read_idle()
        return self.usable

    def _is_in(self, *statuses: int) -> bool:
        return not self._disconnected and self.libpq.get_transaction_status() in statuses

    @property
    def _disconnected(self) -> bool:
        """Whether the socket is closed; psycopg2 may notice that later than libpq."""
        return bool(self.libpq.closed) or self.libpq.fileno() < 0

    @property
    def encrypted(self) -> bool:
        """Whether TLS protects the connection."""
        return bool(self.libpq.info.ssl_in_use)

    @property
    def running(self) -> bool:
        """Whether a statement is running."""
        return self._outcome is not None

    def abandon(self, error: ConnectionLost) -> None:
        """Fail the running statement with `error` now, and close the connection when the server has ended it."""
        outcome, self._outcome = self._outcome, Deferred()
        self._outcome.addBoth(lambda _: self.close())
        assert outcome is not None
        outcome.errback(error)

    def close(self) -> None:
        """Close the connection now; a running statement fails with ConnectionLost.

        A connection that libpq has found broken needs this too, because it still holds its descriptor.
        """
        if self._descriptor < 0:
            if self._connection is not None:
                super().close()
            return
        try:
            self.reactor.removeReader(self)
            self.reactor.removeWriter(self)
        finally:  # even after an error, so that the running statement ends and the pool makes another connection
            self.libpq.close()
            os.close(self._descriptor)
            self._descriptor = -1
            self._settle(Failure(ConnectionDone()))
            if self._on_lost is not None:
                self._on_lost()

    def fileno(self) -> int:
        return super().fileno() if self._descriptor < 0 else self._descriptor

    def doRead(self) -> None:
        if self._outcome is not None:
            self._proceed()
        elif self._descriptor < 0:
            self.continuePolling()  # txpostgres would wait for input, even if libpq waits to write
        else:
            self._read_idle()

    def doWrite(self) -> None:
        if self._outcome is not None:
            self._proceed()
        elif self._descriptor < 0:
            super().doWrite()

    def connectionLost(self, reason: Failure) -> None:
        if self._descriptor < 0:
            super().connectionLost(reason)
            return
        if self._outcome is not None:
            self._proceed()  # the complete result may have arrived before the end of the connection
        self.close()

    def _proceed(self) -> None:
        """Let libpq send and read as much of the running statement as it can, and deliver a complete result.

        Fast path: replaces polling by a cursor of txpostgres and a delivery in the next turn of the reactor, a third of
        the instructions of a statement, see docs/performance.md.
        """
        rows: list[Row] | Failure
        try:
            state = self.libpq.poll()
            if state != extensions.POLL_OK:
                self._watch(sending=state == extensions.POLL_WRITE)
                return
            rows = self._cursor.fetchall() if self._cursor.description else []
        except Exception:  # also for values that Python can't represent, such as dates after the year 9999
            rows = Failure()
        self._watch(sending=False)
        if self._hear is not None:
            self._pass_notifications(self._hear)
        self._settle(rows)  # last, because it may begin the next statement

    def _pass_notifications(self, hear: Callable[[str], None]) -> None:
        while self.libpq.notifies:
            with self._log.failuresHandled("a notification was not handled"):
                hear(self.libpq.notifies.pop(0).payload)

    def _watch(self, *, sending: bool) -> None:
        """Watch the socket for input, and while `sending`, for room to send more of the statement."""
        if sending != self._sending:
            self._sending = sending
            (self.reactor.removeReader if sending else self.reactor.removeWriter)(self)
            (self.reactor.addWriter if sending else self.reactor.addReader)(self)

    def _settle(self, result: list[Row] | Failure) -> None:
        outcome, self._outcome, self._cursor = self._outcome, None, None
        if outcome is not None:
            outcome.callback(result)

    def _read_idle(self) -> None:
        """Read input while no statement is running; close the connection if the server announces its end."""
        try:
            self.libpq.notices.clear()
            self.libpq.poll()
        except psycopg2.Error:
            self.close()
        else:
            if self._hear is not None:
                self._pass_notifications(self._hear)
            # Without a running statement, libpq reports even the FATAL error of a server that stops as a notice.
            if self.libpq.notices or self._disconnected:
                self.close()
