"""The driver: one asynchronous libpq connection in the reactor. The only module that knows txpostgres.

txpostgres makes the connection. Statements then run on psycopg2's connection itself, because a cursor of txpostgres
takes the place of its connection in the reactor for every statement and delivers the result one turn of the reactor
later: that was half of the time of a statement.
"""

import os
import select
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psycopg2
from psycopg2 import extensions
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure
from txpostgres import txpostgres

from .statement import Row

PORT = 5432

Parameters = Sequence[object] | Mapping[str, object] | None


async def connect(reactor: ReactorBase, dsn: str) -> "LibpqConnection":
    """Connect to the server that the DSN names; cancelling this gives up and leaves nothing in the reactor.

    There is no time limit: libpq ignores connect_timeout when it connects asynchronously. Raises psycopg2.Error,
    ConnectionDone, ValueError or OSError.
    """
    attempt = _Attempt(reactor)
    try:
        await attempt.connect(dsn)
        reactor.removeReader(attempt)
        return LibpqConnection(reactor, attempt.pollable())
    except BaseException:
        if attempt.pollable() is not None:
            attempt.close()
        raise


class _Attempt(txpostgres.Connection):  # type: ignore[misc]
    """One attempt to connect, polled by txpostgres.

    These members of txpostgres.Connection are overridden, and are what to look at before that package is upgraded:

    - `poll`: cancelling its Deferred asks the server to cancel, over a second connection, which blocks the reactor.
    - `continuePolling`: it keeps the registration in the reactor of a socket that libpq may have closed, and lets
      errors of the registration pass into the reactor, which then drops the connection without telling anybody.
    - `doRead`: it registers the connection for reading again, whatever libpq waits for.
    """

    def poll(self) -> Deferred[Any]:
        outcome: Deferred[Any] = Deferred()
        polling: Deferred[Any] = super().poll()
        polling.addBoth(lambda result: None if outcome.called else outcome.callback(result))
        return outcome

    def continuePolling(self, swallowErrors: bool = False) -> None:
        try:
            # libpq may open another socket while it connects. An event for the former owner of its number could also
            # have left a registration of the other kind.
            self.reactor.removeReader(self)
            self.reactor.removeWriter(self)
            super().continuePolling(swallowErrors)
        except (psycopg2.Error, ValueError, OSError):  # libpq has lost the socket that it wants to have watched
            self.close()

    def doRead(self) -> None:
        super(txpostgres.Connection, self).doRead()


class _AtOnce:
    """Runs what txpostgres would leave to Twisted's Cooperator, which may exchange the order of notifications."""

    def cooperate(self, calls: Iterator[Deferred[None]]) -> None:
        for _ in calls:
            pass


class _Uncancellable(Deferred[Any]):
    """The result of a statement that goes on when its caller is cancelled; `cancel` only calls a function.

    Fast path: replaces a second Deferred around that of each statement, a quarter of what a statement costs, see
    docs/performance.md.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        super().__init__()
        self.cancel = cancel  # type: ignore[method-assign]


class LibpqConnection:
    """An open connection that runs one statement at a time; `connection` is psycopg2's, in asynchronous mode.

    The reactor watches a duplicate of the socket's descriptor. libpq may close its socket inside any call, and a
    registration left behind would make the reactor take the next socket of that number for one that is watched already.
    """

    def __init__(self, reactor: Any, connection: Any) -> None:
        self.reactor = reactor
        self.on_lost: Callable[[], None] | None = None  # called once, when the connection is closed by either side
        self.on_cancel: Callable[[], None] | None = None  # makes statements uncancellable; called instead
        self._connection = connection
        self._cursor: Any = None  # of the statement that is running
        self._outcome: Deferred[list[Row]] | None = None
        self._sending = False
        self._notifications: Any = None  # txpostgres' observers of this connection, if there are any
        self._descriptor = os.dup(connection.fileno())  # -1 when closed
        self._input = select.poll()
        self._input.register(self._descriptor, select.POLLIN)
        reactor.addReader(self)

    @property
    def disconnected(self) -> bool:
        """Whether there is no socket any more: psycopg2 may learn that later than libpq."""
        return bool(self._connection.closed) or self._connection.fileno() < 0

    @property
    def encrypted(self) -> bool:
        """Whether TLS protects the connection."""
        return bool(self._connection.info.ssl_in_use)

    @property
    def transaction_status(self) -> int:
        """One of psycopg2's TRANSACTION_STATUS constants, known to libpq without asking the server."""
        return int(self._connection.get_transaction_status())

    @property
    def backend_pid(self) -> int:
        """The process id of the server that libpq was told when it connected; a pooler tells one of its own."""
        return int(self._connection.info.backend_pid)

    @property
    def host(self) -> str:
        """The host as the DSN names it, or the directory of the server's socket."""
        return self._connection.info.host or ""

    @property
    def port(self) -> int:
        """The port that libpq has connected to, which it doesn't tell when nobody has named one."""
        return int(self._connection.info.port or PORT)

    @property
    def peer(self) -> tuple[str, int] | None:
        """The address and port at the other end of the TCP connection; None for a unix socket."""
        with socket.socket(fileno=os.dup(self._descriptor)) as end:
            return None if end.family == socket.AF_UNIX else end.getpeername()[:2]

    def parameter(self, name: str) -> str | None:
        """What the server has reported for one of its settings; None for one that it doesn't report."""
        return self._connection.get_parameter_status(name)  # type: ignore[no-any-return]

    def run(self, sql: str, parameters: Parameters) -> Deferred[list[Row]]:
        """Send SQL; fires with the rows of the last statement in it, or fails with psycopg2.Error or ConnectionDone.

        Cancelling it while `on_cancel` is None leaves the connection in the middle of a statement, of no more use.
        """
        self._cursor = self._connection.cursor()
        self._cursor.execute(sql, parameters)
        outcome = self._outcome = Deferred() if self.on_cancel is None else _Uncancellable(self.on_cancel)
        self._proceed()
        return outcome

    def observe(self, hear: Callable[[str], None]) -> None:
        """Call `hear` with the payload of each notification that arrives; it must not use the connection itself."""
        self._notifications = txpostgres.Connection(self.reactor, _AtOnce())
        self._notifications._connection = self._connection
        self._notifications.addNotifyObserver(lambda notification: hear(notification.payload))

    def catch_up(self) -> None:
        """Read what has arrived since the reactor last looked, above all that the server has closed the connection."""
        while not self.disconnected and self._input.poll(0):
            self._read_idle()

    @property
    def running(self) -> bool:
        """Whether a statement is running."""
        return self._outcome is not None

    def abandon(self, error: Exception) -> None:
        """Let the running statement fail for its caller now, and close the connection when its result arrives."""
        outcome, self._outcome = self._outcome, Deferred()
        self._outcome.addBoth(lambda _: self.close())
        assert outcome is not None
        outcome.errback(error)

    def close(self) -> None:
        """Close the connection now; a statement that is running fails with ConnectionDone.

        Needed also for a connection that libpq has found broken, which until then holds its descriptor.
        """
        if self._descriptor < 0:
            return
        try:
            self.reactor.removeReader(self)
            self.reactor.removeWriter(self)
        finally:  # whatever happens, the caller of the running statement is told, and the pool makes another connection
            self._connection.close()
            os.close(self._descriptor)
            self._descriptor = -1
            self._settle(Failure(ConnectionDone()))
            if self.on_lost is not None:
                self.on_lost()

    def logPrefix(self) -> str:
        return "libpq"

    def fileno(self) -> int:
        return self._descriptor

    def doRead(self) -> None:
        if self._outcome is not None:
            self._proceed()
        else:
            self._read_idle()

    def doWrite(self) -> None:
        if self._outcome is not None:
            self._proceed()

    def connectionLost(self, reason: Failure) -> None:
        if self._outcome is not None:
            self._proceed()  # the result may have arrived in full before the end of the connection
        self.close()

    def _proceed(self) -> None:
        """Let libpq send and read what it can of the running statement, and deliver the result when it is complete.

        Fast path: replaces polling by a cursor of txpostgres and a delivery in the next turn of the reactor, a third of
        the instructions of a statement, see docs/performance.md.
        """
        rows: list[Row] | Failure
        try:
            state = self._connection.poll()
            if state != extensions.POLL_OK:
                self._watch(sending=state == extensions.POLL_WRITE)
                return
            rows = self._cursor.fetchall() if self._cursor.description else []
        except Exception:  # also for values that Python can't represent, such as dates after the year 9999
            rows = Failure()
        self._watch(sending=False)
        if self._notifications is not None:
            self._notifications.checkForNotifies()
        self._settle(rows)  # last, because it may begin the next statement

    def _watch(self, *, sending: bool) -> None:
        """Wait until the socket takes more of the statement, or else for input, which may come at any time."""
        if sending != self._sending:
            self._sending = sending
            (self.reactor.removeReader if sending else self.reactor.removeWriter)(self)
            (self.reactor.addWriter if sending else self.reactor.addReader)(self)

    def _settle(self, result: list[Row] | Failure) -> None:
        outcome, self._outcome, self._cursor = self._outcome, None, None
        if outcome is not None:
            outcome.callback(result)

    def _read_idle(self) -> None:
        """Read input while no statement is running; close the connection if it says that the server is closing it."""
        try:
            self._connection.notices.clear()
            self._connection.poll()
        except psycopg2.Error:
            self.close()
        else:
            if self._notifications is not None:
                self._notifications.checkForNotifies()
            # without a running statement, libpq reports even the FATAL error of a server about to leave as a notice
            if self._connection.notices or self.disconnected:
                self.close()
