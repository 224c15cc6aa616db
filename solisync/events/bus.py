"""The bus: tells the streams of this process, and all other processes, what has been committed.

A notice is a hint: it may get lost, and who hears that one may have been lost compares with the database. So no
transaction of a player waits for the bus, and nothing is kept until it has been heard.
"""

from collections.abc import Callable, Coroutine, Sequence
from secrets import token_urlsafe
from typing import Any

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger

from ..errors import DatabaseError
from ..postgres.times import TIMES, PoolTimes
from ..process.metrics import Metrics
from .bus_connection import BusConnection
from .notices import Notice, decode_message, decode_notices, encode_messages, encode_notice

BATCH_SECONDS = 0.05
SEND_SECONDS = 2.0  # after which a notice is of no use any more
ECHO_SECONDS = 5.0  # how often a process sends something, and hears it, so that it knows whether it hears
DEAF_SECONDS = 15.0
WAITING_MAX = 10_000  # notices that wait to be sent
SENDERS_MAX = 1_000


class Bus:
    """Hands notices to `subscribers`, those of this process at once, and tells the other processes in batches.

    `on_loss` is called when notices of other processes may have been lost.
    """

    _log = Logger()

    def __init__(
        self, *, reactor: ReactorBase, metrics: Metrics, shared_pooler: bool = False, times: PoolTimes = TIMES
    ) -> None:
        self.subscribers: list[Callable[[Notice], None]] = []
        self.on_loss: Callable[[], None] = lambda: None
        self._reactor = reactor
        self._metrics = metrics
        self._connection = BusConnection(
            reactor=reactor, shared_pooler=shared_pooler, hear=self._hear, begun=self._begin, times=times
        )
        self._name = token_urlsafe(6)
        self._number = 1  # of the next message
        self._waiting: list[bytes] = []
        self._oldest = 0.0  # when the first of these was published
        self._timer: IDelayedCall | None = None
        self._sending = False
        self._sent_at: dict[int, float] = {}  # of messages that were not heard yet
        self._closed = True
        self._echoed = False  # whether a message of this process has been heard on this connection
        self._began_at = self._heard_at = self._sent_last = float("-inf")
        self._expected: dict[str, int] = {}  # the number of the next message, by sender
        self._echo = LoopingCall(self._check_echo)
        self._echo.clock = reactor

    @property
    def hears(self) -> bool:
        """Whether messages of other processes arrive."""
        return self._echoed and self._connection.ready

    def open(self, dsn: str) -> None:
        """Connect to the database that all processes share, and stay connected."""
        self._closed = False
        self._connection.open(dsn)
        self._echo.start(ECHO_SECONDS, now=False)

    def close(self) -> None:
        """Disconnect; what still waits is not sent."""
        self._closed = True
        if self._echo.running:
            self._echo.stop()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._waiting.clear()
        self._connection.close()

    def publish(self, *notices: Notice) -> None:
        """Tell everybody of something that has been committed."""
        for notice in notices:
            self._deliver(notice)
        if self._closed:
            return
        if not self._waiting:
            self._oldest = self._reactor.seconds()
        if len(self._waiting) < WAITING_MAX:
            self._waiting += map(encode_notice, notices)
        self._send_soon()

    def _deliver(self, notice: Notice) -> None:
        for hear in self.subscribers:
            try:
                hear(notice)
            except Exception:  # the caller has committed, and must answer
                self._log.failure("a notice was not understood")

    def _send_soon(self) -> None:
        if self._waiting and self._timer is None and not self._sending:
            self._timer = self._reactor.callLater(BATCH_SECONDS, self._begin_sending)

    def _begin_sending(self) -> None:
        self._timer = None
        self._run(self._send_waiting())

    def _run(self, sending: Coroutine[Any, Any, None]) -> None:
        """Run what sends, which is one at a time."""
        self._sending = True
        running = Deferred.fromCoroutine(sending)
        running.addErrback(lambda failure: self._log.failure("could not send to the bus", failure))
        running.addCallback(self._end_sending)

    def _end_sending(self, _: None) -> None:
        self._sending = False
        self._send_soon()

    async def _send_waiting(self) -> None:
        """Send what waits, batch after batch, and drop what has waited too long."""
        while self._waiting:
            left = self._oldest + SEND_SECONDS - self._reactor.seconds()
            if left > 0 and not self._connection.ready:
                await deferLater(self._reactor, BATCH_SECONDS)
                continue
            notices, self._waiting = self._waiting, []
            await self._send(notices, left)
            if self._waiting:
                await deferLater(self._reactor, BATCH_SECONDS)

    async def _send(self, notices: Sequence[bytes], seconds: float) -> None:
        messages = encode_messages(self._name, self._number, notices)
        first, self._number = self._number, self._number + len(messages)
        outcome = "dropped"
        self._sent_last = self._sent_at[first] = self._reactor.seconds()
        try:
            if seconds > 0:
                await self._connection.send(messages, seconds)
                outcome = "sent"
        except DatabaseError:
            del self._sent_at[first]
        self._metrics.bus_batches.labels(outcome).inc()

    def _begin(self) -> None:
        """The connection has been made: nothing was heard before."""
        self._echoed = False
        self._began_at = self._heard_at = self._reactor.seconds()
        self._sent_at.clear()
        self._expected.clear()
        self._sent_last = float("-inf")
        self._check_echo()

    def _check_echo(self) -> None:
        now = self._reactor.seconds()
        self._metrics.bus_deaf.set(not self.hears)
        if not (self._connection.ready and self._connection.listening):
            return
        if now - self._heard_at > DEAF_SECONDS:
            self._connection.drop()
        elif not self._sending and now - self._sent_last >= ECHO_SECONDS:
            self._run(self._send((), SEND_SECONDS))

    def _hear(self, text: str) -> None:
        message = decode_message(text)
        if message is None:
            return
        if message.sender == self._name:
            self._hear_echo(message.number)
            return
        if message.number:
            self._note(message.sender, message.number)
        for notice in decode_notices(message):
            self._deliver(notice)

    def _hear_echo(self, number: int) -> None:
        """A message of this process has come back: so those of others come, too."""
        self._heard_at = self._reactor.seconds()
        sent_at = self._sent_at.pop(number, None)
        if sent_at is not None:
            self._metrics.bus_lag.observe(self._heard_at - sent_at)
        if not self._echoed:
            self._echoed = True
            self._metrics.bus_deaf.set(False)
            self.on_loss()

    def _note(self, sender: str, number: int) -> None:
        """Note the number of a message of another process; a gap before it is a loss."""
        expected = self._expected.pop(sender, None)
        if expected is None:  # a process that has just begun, or of which nothing has been heard on this connection
            long_here = self._reactor.seconds() - self._began_at > 2 * ECHO_SECONDS
            expected = 1 if long_here else number
        self._expected[sender] = number + 1
        if len(self._expected) > SENDERS_MAX:
            del self._expected[next(iter(self._expected))]
        if number != expected:
            self.on_loss()
