"""The sending half of a connection, which sends no faster than the client reads.

Twisted itself answers pipelined requests even if the client doesn't read the replies, and keeps these in memory.
"""

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from socket import SO_ERROR, SOL_SOCKET
from typing import Any

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web import http

from .connections import Connections
from .deadlines import UnreadTimer
from .streaming import LAST_CHUNK, ConnectionOutlet

PIECE_BYTES = 16_384  # a transport buffers up to 65,536 bytes and one more piece
PROBE_SECONDS = 0.5
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"  # a client that didn't ask for it may discard it (RFC 9110 §15.2.1)


class BackpressureChannel(http.HTTPChannel):
    """Sends one reply at a time, in pieces, with a timer that runs while the client is behind."""

    transport: Any  # TCP, TLS or a unix socket: each can abort, but Twisted's interfaces lack that
    _discarded = False
    _answered: http.Request | None = None  # the request whose reply isn't completely sent
    _taken: Deferred[None] | None = None  # the latest result of `taken`
    streaming: ConnectionOutlet | None = None  # once the connection has become a stream
    _probe: "HalfCloseProbe | None" = None  # once the client has closed its sending half

    def __init__(self, *, reactor: ReactorBase, connections: Connections) -> None:
        super().__init__()
        self.callLater = reactor.callLater  # type: ignore[assignment]  # TimeoutMixin takes the global reactor
        self._connections = connections
        self._unsent: deque[bytes] = deque()

    def connectionMade(self) -> None:
        self._unread_timer = UnreadTimer(self.transport, call_later=self.callLater)
        super().connectionMade()
        self._connections.end_of_turn.adopt(self.transport)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._connections.end_of_turn.release(self.transport)
        if self._probe is not None:
            self._probe.stop()
        if self.streaming is None:
            self.end(reason)
        else:  # thousands of streams may end at the same time when a network fails
            self._connections.stream_ends.run(partial(self.end, reason))

    def end(self, reason: Failure) -> None:
        """Clean up after the connection is lost."""
        if self.streaming is not None:
            self.streaming.lost()
        self._unread_timer.stop()
        self._unsent.clear()  # now, because request and channel are a cycle, which the collector frees much later
        super().connectionLost(reason)

    def write(self, data: bytes) -> None:
        if len(data) <= PIECE_BYTES and not self._unsent and not self._waitingForTransport:
            self.transport.write(data)
            return
        self._unsent.extend(data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
        self._send()
        if self._unsent:  # even if the transport was already full
            self._hold_unsent()

    def _send(self) -> None:
        while self._unsent and not self._waitingForTransport:
            self.transport.write(self._unsent.popleft())

    def taken(self) -> Deferred[None]:
        """Return a Deferred that fires when the transport has taken all written bytes.

        It doesn't fire if the connection is lost first: the waiting code must be cancelled.
        """
        if not self._unsent and not self._waitingForTransport:
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

    def requestDone(self, request: http.Request) -> None:
        if self._unsent or self._waitingForTransport:
            self._answered = request
            self._networkProducer.pauseProducing()  # or the next request would wait in memory
        else:
            super().requestDone(request)

    def pauseProducing(self) -> None:
        # The transport calls this when its buffer is full, and resumeProducing when the buffer is empty.
        super().pauseProducing()
        self._unread_timer.start()
        self._hold_unsent()

    def _hold_unsent(self) -> None:
        self._connections.unread.hold(self, sum(map(len, self._unsent)))

    def resumeProducing(self) -> None:
        if self._discarded:
            self.cut()
            return
        self._connections.unread.release(self)
        self._unread_timer.stop()
        super().resumeProducing()
        self._send()
        if self._unsent or self._waitingForTransport:
            return
        if self.streaming is not None:
            self.streaming.drained()
        elif self._taken is not None:
            taken, self._taken = self._taken, None
            taken.callback(None)
        elif self._answered is not None:
            request, self._answered = self._answered, None
            super().requestDone(request)

    def loseConnection(self) -> None:
        self._unread_timer.start()  # a client that doesn't read the last bytes also keeps the connection open
        super().loseConnection()  # may end the connection immediately, and with it the timer

    def discard_unsent(self) -> None:
        """Drop the unsent rest of a reply; the connection is cut when the client reads again, or after UNREAD_SECONDS.

        It isn't cut immediately, because an attacker would reconnect, which costs more than a stalled connection.
        """
        self._discarded = True
        self._unsent.clear()

    def end_sending(self) -> None:
        """Close the sending half, if the transport has one; the client may still send."""
        # TLS has no half-closed connections: loseWriteConnection would end the TCP connection below.
        half_close = None if self.isSecure() else getattr(self.transport, "loseWriteConnection", None)
        if half_close is None:
            self.loseConnection()
        else:
            self.transport.unregisterProducer()
            half_close()

    def probe(self) -> None:
        """Find out whether a client that has ended its input has hung up."""
        if self.streaming is not None:
            self.streaming.probe()
        self._probe = self._probe or HalfCloseProbe(self)
        self._probe.start()

    def writeConnectionLost(self) -> None:
        """Ignore the end of the sending half, which the service itself has closed."""

    def cut(self) -> None:
        """Close the connection immediately, dropping unsent bytes."""
        self.transport.abortConnection()


class HalfCloseProbe:
    """Detects a client that has hung up while its request is handled, and cuts the connection.

    At the end of the input, a client that waits for its reply (`nc -N`) looks like one that has hung up. They differ
    when something is sent to them: only the latter's socket responds with a reset. So the service sends an interim
    response, which any client may ignore, before a slow reply. A waiting client gets its answer (RFC 9112 §9.6). If the
    client has hung up, the request is cancelled.

    Only for TCP and unix sockets: Twisted ends a TLS connection at the end of its input.
    """

    def __init__(self, channel: BackpressureChannel) -> None:
        self._channel = channel
        self._timer: IDelayedCall | None = None
        self._probed = False

    def start(self) -> None:
        """Check for a reset every PROBE_SECONDS, until the request is answered."""
        if self._timer is None:
            self._timer = self._channel.callLater(PROBE_SECONDS, self._look_for_reset)

    def stop(self) -> None:
        """Stop checking, because the connection is lost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_for_reset(self) -> None:
        self._timer = None
        channel = self._channel
        if (
            not channel._handlingRequest or not channel.requests
        ):  # Twisted's flag stays set while it sends the last reply
            return
        # Reading can't detect the reset: after the end of its input, a socket reports only that end.
        if channel.transport.getHandle().getsockopt(SOL_SOCKET, SO_ERROR):
            channel.cut()
            return
        request = channel.requests[0]
        if not self._probed and not request.startedWriting and request.clientproto == b"HTTP/1.1":
            self._probed = True
            channel.transport.write(INTERIM)
        if channel.streaming is None:  # on a stream, a heartbeat detects it
            self.start()
