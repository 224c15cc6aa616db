"""The sending half of a connection, which sends no faster than the client reads.

Twisted answers pipelined requests whether or not the client reads the replies, and keeps unread replies in memory.
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

PIECE_BYTES = 16_384  # a transport buffers up to 65,536 bytes, and the piece that makes it full
PROBE_SECONDS = 0.5
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"  # may be discarded by who did not ask for it (RFC 9110 §15.2.1)


class BackpressureChannel(http.HTTPChannel):
    """Sends one reply at a time, in pieces, with a timer that runs while the client is behind."""

    transport: Any  # TCP, TLS or a unix socket: each can abort, but no interface of Twisted's says so
    _discarded = False
    _answered: http.Request | None = None  # the request whose reply is not all sent
    _taken: Deferred[None] | None = None  # what `taken` has returned last
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
        else:  # thousands of streams may end at once, where a network fails
            self._connections.stream_ends.run(partial(self.end, reason))

    def end(self, reason: Failure) -> None:
        """Forget the connection, which is lost."""
        if self.streaming is not None:
            self.streaming.lost()
        self._unread_timer.stop()
        self._unsent.clear()  # at once: request and channel are a cycle, which the collector frees much later
        super().connectionLost(reason)

    def write(self, data: bytes) -> None:
        if len(data) <= PIECE_BYTES and not self._unsent and not self._waitingForTransport:
            self.transport.write(data)
            return
        self._unsent.extend(data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
        self._send()
        if self._unsent:  # also where the transport was full before
            self._hold_unsent()

    def _send(self) -> None:
        while self._unsent and not self._waitingForTransport:
            self.transport.write(self._unsent.popleft())

    def taken(self) -> Deferred[None]:
        """Fires when all that was written has been taken, but for what a transport buffers.

        When the connection is lost before, it doesn't fire: whoever waits is to be cancelled.
        """
        if not self._unsent and not self._waitingForTransport:
            return succeed(None)
        self._taken = Deferred()
        return self._taken

    async def send_pieces(self, pieces: AsyncGenerator[bytes, None], *, chunked: bool) -> None:
        """Send each piece, none of which is empty, and ask for the next one when the client has taken it.

        So one of them at a time is in memory, and counts among what clients leave unread. Raises what `pieces` raises;
        then, and when this is cancelled, the last chunk is missing.
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
        self._unread_timer.start()  # a client that does not read the last bytes keeps the connection open, too
        super().loseConnection()  # which may end it at once, and the timer with it

    def discard_unsent(self) -> None:
        """Drop the unsent rest of a reply; the connection is cut once the client reads on, or at UNREAD_SECONDS.

        It is not cut at once: an attacker would connect again at once, at a higher cost than one stalled connection.
        """
        self._discarded = True
        self._unsent.clear()

    def end_sending(self) -> None:
        """Close the sending half, if the transport has one; the client may go on sending."""
        # TLS has no half-closed connections: loseWriteConnection would end the TCP connection below.
        half_close = None if self.isSecure() else getattr(self.transport, "loseWriteConnection", None)
        if half_close is None:
            self.loseConnection()
        else:
            self.transport.unregisterProducer()
            half_close()

    def probe(self) -> None:
        """Find out whether the client, which sends no more, has hung up."""
        if self.streaming is not None:
            self.streaming.probe()
        self._probe = self._probe or HalfCloseProbe(self)
        self._probe.start()

    def writeConnectionLost(self) -> None:
        """The sending side has been closed, by the service itself."""

    def cut(self) -> None:
        """Close the connection at once, whatever is still unsent."""
        self.transport.abortConnection()


class HalfCloseProbe:
    """Finds out whether a client that sends no more has hung up, while its request is handled; cuts the connection.

    At the end of the input, a client that waits for its reply (`nc -N`) and one that has hung up look the same. They
    differ in what comes back when something is sent to them: nothing, or a reset. So a reply that takes long is
    preceded by an interim response, which any client may ignore. A client that waits gets its answer (RFC 9112 §9.6);
    for one that has hung up, the request is cancelled.

    For TCP and unix sockets; Twisted ends a TLS connection at the end of its input.
    """

    def __init__(self, channel: BackpressureChannel) -> None:
        self._channel = channel
        self._timer: IDelayedCall | None = None
        self._probed = False

    def start(self) -> None:
        """Look every PROBE_SECONDS for a reset, until the request is answered."""
        if self._timer is None:
            self._timer = self._channel.callLater(PROBE_SECONDS, self._look_for_reset)

    def stop(self) -> None:
        """Look no more: the connection is lost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_for_reset(self) -> None:
        self._timer = None
        channel = self._channel
        if not channel._handlingRequest or not channel.requests:  # Twisted "handles" while it sends the last reply
            return
        # To read on would not tell: after the end of its input a socket keeps saying that there is none.
        if channel.transport.getHandle().getsockopt(SOL_SOCKET, SO_ERROR):
            channel.cut()
            return
        request = channel.requests[0]
        if not self._probed and not request.startedWriting and request.clientproto == b"HTTP/1.1":
            self._probed = True
            channel.transport.write(INTERIM)
        if channel.streaming is None:  # else a heartbeat will tell
            self.start()
