"""The bus: passes notices of commits to the streams of this process and to all other processes.

A notice is a hint, and may be lost. A process that detects a possible loss compares with the database. So no player's
transaction waits for the bus, and no notice is kept until it arrives.

Each process numbers its messages. A process that receives no others sends only its echoes, but keeps numbering its
notices. So the first process that receives its messages again detects the gap by the number.
"""

from collections.abc import Callable, Sequence
from secrets import token_urlsafe

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import LoopingCall, deferLater
from twisted.python.failure import Failure

from ..errors import DatabaseError
from ..postgres import TIMES, PoolTimes
from ..process.metrics import Metrics
from ..process.tasks import Task
from .bus_connection import BusConnection
from .live_errors import LiveErrors
from .notices import Notice, decode_message, decode_notices, encode_messages, encode_notice

BATCH_SECONDS = 0.05
SEND_SECONDS = 2.0  # after which a notice is obsolete
ECHO_SECONDS = 5.0  # a process sends at least this often, and checks that its messages come back
DEAF_SECONDS = 15.0  # without messages for this long a process is deaf; without others' messages it is alone
WAITING_MAX = 10_000  # notices that wait to be sent
SENDERS_MAX = 1_000


class Bus:
    """Passes notices to this process's `subscribers` immediately, and to the other processes in batches.

    `on_loss` is called when notices of other processes may have been lost.
    """

    def __init__(
        self,
        *,
        reactor: ReactorBase,
        metrics: Metrics,
        errors: LiveErrors,
        shared_pooler: bool = False,
        times: PoolTimes = TIMES,
    ) -> None:
        self.subscribers: list[Callable[[Notice], None]] = []
        self.on_loss: Callable[[], None] = lambda: None
        self._reactor = reactor
        self._metrics = metrics
        self._errors = errors
        self._connection = BusConnection(
            reactor=reactor,
            shared_pooler=shared_pooler,
            hear=self._hear,
            begun=self._begin,
            errors=errors,
            times=times,
        )
        self._name = token_urlsafe(6)
        self._number = 1  # the number of the next message
        self._waiting: list[bytes] = []
        self._oldest = 0.0  # the time when the first of these was published
        self._timer: IDelayedCall | None = None
        self._running: Deferred[None] | None = None  # the running send
        self._sent_at: dict[int, float] = {}  # by number, for messages that haven't come back yet
        self._closed = True
        self._echoed = False  # whether a message of this process has come back on this connection
        self._began_at = self._heard_at = self._others_at = self._sent_last = float("-inf")
        self._expected: dict[str, int] = {}  # the number of the next message, by sender
        self._echo = LoopingCall(self._check_echo)
        self._echo.clock = reactor

    @property
    def hears(self) -> bool:
        """Whether messages of other processes arrive."""
        return self._echoed and self._connection.ready

    @property
    def alone(self) -> bool:
        """True if no other process exists; every process sends a message every ECHO_SECONDS."""
        return self.hears and self._reactor.seconds() - max(self._began_at, self._others_at) > DEAF_SECONDS

    def open(self, dsn: str) -> None:
        """Connect to the database that all processes share, and stay connected."""
        self._closed = False
        self._connection.open(dsn)
        self._echo.start(ECHO_SECONDS, now=False).addErrback(self._errors.failed, "the bus sends no echoes any more")

    async def close(self) -> None:
        """Send the waiting notices if there is a connection, and disconnect."""
        self._closed = True
        if self._echo.running:
            self._echo.stop()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
            if self._connection.ready:
                self._begin_sending()
        if self._running is not None:
            await self._running
        self._connection.close()

    def publish(self, *notices: Notice) -> None:
        """Notify all processes of something that has been committed."""
        for notice in notices:
            self._deliver(notice)
        if self._closed:
            return
        if self.alone:
            self._number += 1
            return
        if not self._waiting:
            self._oldest = self._reactor.seconds()
        if len(self._waiting) < WAITING_MAX:
            self._waiting += map(encode_notice, notices)
        else:
            self._number += 1
            self._errors.note("dropped", f"more than {WAITING_MAX:,} notices wait for the bus")
        self._send_soon()

    def _deliver(self, notice: Notice) -> None:
        for hear in self.subscribers:
            try:
                hear(notice)
            except Exception:  # the caller has committed, and must answer
                self._errors.failed(Failure(), "a notice was not understood")

    def _send_soon(self) -> None:
        if self._waiting and self._timer is None and self._running is None and not self._closed:
            self._timer = self._reactor.callLater(BATCH_SECONDS, self._begin_sending)

    def _begin_sending(self) -> None:
        self._timer = None
        self._run(self._send_waiting())

    def _run(self, sending: Task[None]) -> None:
        """Run a send; only one runs at a time."""
        self._running = Deferred.fromCoroutine(sending)
        self._running.addErrback(self._errors.failed, "could not send to the bus")
        self._running.addCallback(self._end_sending)

    def _end_sending(self, _: None) -> None:
        self._running = None
        self._send_soon()

    async def _send_waiting(self) -> None:
        """Send the waiting notices in batches, and drop notices that have waited too long."""
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
        self._sent_last = self._reactor.seconds()
        if self._connection.listening:  # otherwise no message comes back, and this entry would stay
            self._sent_at[first] = self._sent_last
        try:
            if seconds > 0:
                await self._connection.send(messages, seconds)
                outcome = "sent"
        except DatabaseError as error:
            self._sent_at.pop(first, None)  # missing if the connection doesn't listen or was replaced
            self._errors.note("dropped", f"a batch could not be sent: {error}")
        self._metrics.bus_batches.labels(outcome).inc()

    def _begin(self) -> None:
        """Reset what was received, because the connection is new."""
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
        elif self._running is None and now - self._sent_last >= ECHO_SECONDS:
            self._run(self._send((), SEND_SECONDS))

    def _hear(self, text: str) -> None:
        message = decode_message(text)
        if message is None:
            self._errors.note("unknown", "a message on the bus is of another version, or of another program")
            return
        if message.sender == self._name:
            self._hear_echo(message.number)
            return
        if message.number:
            self._note(message.sender, message.number)
        notices = [*decode_notices(message)]
        if len(notices) < len(message.notices):
            self._errors.note("unknown", "a process of another version tells more than this one understands")
        for notice in notices:
            self._deliver(notice)

    def _hear_echo(self, number: int) -> None:
        """Note that a message of this process came back, which shows that others' messages arrive too."""
        self._heard_at = self._reactor.seconds()
        sent_at = self._sent_at.pop(number, None)
        if sent_at is not None:
            self._metrics.bus_lag.observe(self._heard_at - sent_at)
        if not self._echoed:
            self._echoed = True
            self._metrics.bus_deaf.set(False)
            self.on_loss()

    def _note(self, sender: str, number: int) -> None:
        """Note the number of another process's message, and detect whether earlier ones were missed."""
        self._others_at = self._reactor.seconds()
        known, expected = sender in self._expected, self._expected.pop(sender, 1)
        self._expected[sender] = number + 1
        if len(self._expected) > SENDERS_MAX:
            del self._expected[next(iter(self._expected))]
        if number != expected:
            if known:
                self._errors.note("missed", "a message of another process has not arrived")
            self.on_loss()
