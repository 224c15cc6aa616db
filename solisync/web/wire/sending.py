"""The sending half of a connection, which sends no faster than the client reads."""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from .connections import ByteBudget
from .deadlines import UnreadTimer
from .streaming import LAST_CHUNK
from .transport import SocketTransport

PIECE_BYTES = 16_384  # a transport buffers up to 65,536 bytes and one more piece


@implementer(IPushProducer)
class Sender:
    """Sends the bytes of a connection in pieces, with a timer that runs while the client is behind.

    The transport calls `pauseProducing` when its buffer is full, and `resumeProducing` when it is empty. `unread`
    bounds the bytes that wait for all clients. `on_sent` is called when everything was taken after a wait, unless
    `send_pieces` waits for it.
    """

    __slots__ = ("_discarded", "_on_sent", "_taken", "_timer", "_transport", "_unread", "_unsent", "full")

    def __init__(
        self,
        transport: SocketTransport,
        *,
        reactor: ReactorBase,
        unread: "ByteBudget[Sender]",
        on_sent: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._unread = unread
        self._on_sent = on_sent
        self._timer = UnreadTimer(transport, reactor=reactor)
        self._unsent: deque[bytes] = deque()
        self._taken: Deferred[None] | None = None  # the latest result of `taken`
        self._discarded = False
        self.full = False  # whether the transport's buffer is
        transport.registerProducer(self, True)

    @property
    def busy(self) -> bool:
        """Whether written bytes wait for the client."""
        return self.full or bool(self._unsent)

    def write(self, data: bytes) -> None:
        """Send data when the client has taken what was written before."""
        if len(data) <= PIECE_BYTES and not self._unsent and not self.full:
            self._transport.write(data)
            return
        self._unsent.extend(data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
        self._send()
        if self._unsent:  # even if the transport was already full
            self._hold_unsent()

    def _send(self) -> None:
        while self._unsent and not self.full:
            self._transport.write(self._unsent.popleft())

    def taken(self) -> Deferred[None]:
        """Return a Deferred that fires when the transport has taken all written bytes.

        It doesn't fire if the connection is lost first: the waiting code must be cancelled.
        """
        if not self.busy:
            return succeed(None)
        self._taken = Deferred()
        return self._taken

    async def send_pieces(self, pieces: AsyncGenerator[bytes, None], *, chunked: bool) -> None:
        """Send each non-empty piece, and generate the next one when the client has taken it.

        One piece is in memory at a time; it counts towards the budget of unread bytes. Raises the errors of `pieces`;
        after an error, or if this is cancelled, the last chunk is missing.
        """
        async with aclosing(pieces):
            await self.taken()
            async for piece in pieces:
                if chunked:
                    self.write(b"%x\r\n" % len(piece))
                self.write(piece)
                if chunked:
                    self.write(b"\r\n")
                del piece
                await self.taken()
        if chunked:
            self.write(LAST_CHUNK)

    def pauseProducing(self) -> None:
        self.full = True
        self._timer.start()
        self._hold_unsent()

    def resumeProducing(self) -> None:
        if self._discarded:
            self._transport.abortConnection()
            return
        self._unread.release(self)
        self._timer.stop()
        self.full = False
        self._send()
        if self.busy:
            return
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.callback(None)
        else:
            self._on_sent()

    def stopProducing(self) -> None:
        """Do nothing: `stop` is called when the connection is lost."""

    def _hold_unsent(self) -> None:
        self._unread.hold(self, sum(map(len, self._unsent)))

    def discard_unsent(self) -> None:
        """Drop the unsent rest of a reply; the connection is cut when the client reads again, or after UNREAD_SECONDS.

        It isn't cut immediately, because an attacker would reconnect, which costs more than a stalled connection.
        """
        self._discarded = True
        self._unsent.clear()

    def await_client(self) -> None:
        """Cut the connection if the client doesn't read the last bytes."""
        self._timer.start()

    def close(self) -> None:
        """Close the connection when everything is sent."""
        self.await_client()
        self._transport.unregisterProducer()  # or the transport would wait for more
        self._transport.loseConnection()  # may end the connection immediately, and with it the timer

    def stop(self) -> None:
        """Forget what is unsent, because the connection is lost."""
        self._unread.release(self)
        self._timer.stop()
        self._unsent.clear()
        del self._on_sent  # a part of a cycle with the connection, whose transport may have unsent data
