"""A process's connection to the bus: it sends by NOTIFY, receives by LISTEN, and reconnects automatically."""

from collections.abc import Callable, Sequence

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..errors import ConnectionFailed, ConnectionLost, DatabaseError
from ..postgres import TIMES, PoolTimes
from ..postgres.connection import Connection
from ..postgres.opening import open_connection
from ..postgres.transaction import Statements
from ..process.logs import Reasons
from ..storage import streams
from .live_errors import LiveErrors

LISTEN_SECONDS = 3.0


class BusConnection:
    """A connection outside the pool, from `open` to `close`; `hear` gets all processes' messages, its own included.

    `begun` is called for every new connection. A connection through a pooler that shares server connections can send
    but not listen. With `shared_pooler` set, it doesn't try to listen.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        reactor: ReactorBase,
        shared_pooler: bool,
        hear: Callable[[str], None],
        begun: Callable[[], None],
        errors: LiveErrors,
        times: PoolTimes = TIMES,
    ) -> None:
        self._reactor = reactor
        self._shared_pooler = shared_pooler
        self._hear = hear
        self._begun = begun
        self._errors = errors
        self._times = times
        self._connection: Connection | None = None
        self._running: Deferred[None] | None = None
        self._reasons = Reasons()  # the reasons of failed attempts since the last connection
        self.listening = False  # whether the connection is meant to receive messages

    @property
    def ready(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    def open(self, dsn: str) -> None:
        """Connect, and connect again whenever the connection is lost."""
        self._running = Deferred.fromCoroutine(self._keep_open(dsn)).addErrback(self._log_unless_closed)

    def close(self) -> None:
        """Close the connection and don't reconnect."""
        if self._running is not None:
            self._running.cancel()
        self.drop()

    def drop(self) -> None:
        """Close the connection, which is then replaced."""
        if self._connection is not None:
            self._connection.close()

    async def send(self, messages: Sequence[str], seconds: float) -> None:
        """Send messages to all listening processes; raises DatabaseError unless that succeeds within `seconds`."""
        if self._connection is None:
            raise ConnectionLost("not connected")
        sending = Deferred.fromCoroutine(streams.notify(Statements(self._connection), messages))
        try:
            await sending.addTimeout(seconds, self._reactor)
        except TimeoutError:
            self.drop()
            raise ConnectionLost(f"no answer within {seconds:.1f} s") from None

    async def _keep_open(self, dsn: str) -> None:
        while True:
            try:
                connection = await open_connection(self._reactor, dsn, in_public=False, times=self._times)
                try:
                    lost = await self._begin(connection)
                finally:
                    if self._connection is not connection:
                        connection.close()
                await lost
            except (ConnectionFailed, DatabaseError, TimeoutError) as error:
                if self._reasons.is_new(str(error)):
                    self._log.warn("no connection to the bus, still trying: {error}", error=error)
            except CancelledError:
                raise
            except Exception:  # without the bus, the process would receive nothing until it ends
                self._errors.failed(Failure(), "the connection to the bus has failed")
            await deferLater(self._reactor, self._times.reconnect)

    async def _begin(self, connection: Connection) -> Deferred[None]:
        """Listen, and use this connection from now on; return a Deferred that fires when it is lost."""
        lost: Deferred[None] = Deferred()
        self.listening = not (self._shared_pooler and connection.server.pooled)
        if self.listening:
            listening = Deferred.fromCoroutine(connection.listen(streams.CHANNEL, self._hear))
            await listening.addTimeout(LISTEN_SECONDS, self._reactor)

        def lose() -> None:
            self._connection = None
            lost.callback(None)

        connection.when_lost(lose)
        self._connection = connection
        if self._reasons:
            self._log.info("connected to the bus again: {server}", server=connection.server.name)
            self._reasons.forget()
        self._begun()
        return lost

    def _log_unless_closed(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            self._errors.failed(failure, "the bus has ended")
