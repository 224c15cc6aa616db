"""The sending half of a connection, which sends no faster than the client reads.

Twisted answers pipelined requests whether or not the client reads the replies, and keeps unread replies in memory.
"""

import socket
from collections import deque
from struct import error as struct_error
from struct import unpack_from
from typing import Any

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web import http

from .connections import Connections

UNREAD_SECONDS = 30.0
TAKEN_BYTES = 65_536  # what a client must take in that time
_ACKED_AT = 120  # in struct tcp_info
PIECE_BYTES = 16_384  # a transport buffers up to 65,536 bytes, and the piece that makes it full


class BackpressureChannel(http.HTTPChannel):
    """Sends one reply at a time, in pieces; a client must take TAKEN_BYTES in each UNREAD_SECONDS."""

    transport: Any  # TCP, TLS or a unix socket: each can abort, but no interface of Twisted's says so
    _discarded = False
    _unread: IDelayedCall | None = None
    _acknowledged = 0  # bytes, when the timer was started
    _answered: http.Request | None = None  # the request whose reply is not all sent
    _taken: Deferred[None] | None = None  # what `taken` has returned last

    def __init__(self, *, reactor: ReactorBase, connections: Connections) -> None:
        super().__init__()
        self.callLater = reactor.callLater  # type: ignore[assignment]  # TimeoutMixin takes the global reactor
        self._connections = connections
        self._unsent: deque[bytes] = deque()

    def connectionMade(self) -> None:
        super().connectionMade()
        self._connections.end_of_turn.adopt(self.transport)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._connections.end_of_turn.release(self.transport)
        self._stop_unread_timer()
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

    def requestDone(self, request: http.Request) -> None:
        if self._unsent or self._waitingForTransport:
            self._answered = request
            self._networkProducer.pauseProducing()  # or the next request would wait in memory
        else:
            super().requestDone(request)

    def pauseProducing(self) -> None:
        # The transport calls this when its buffer is full, and resumeProducing when the buffer is empty.
        super().pauseProducing()
        self._start_unread_timer()
        self._hold_unsent()

    def _hold_unsent(self) -> None:
        self._connections.unread.hold(self, sum(map(len, self._unsent)))

    def resumeProducing(self) -> None:
        if self._discarded:
            self.cut()
            return
        self._connections.unread.release(self)
        self._stop_unread_timer()
        super().resumeProducing()
        self._send()
        if self._unsent or self._waitingForTransport:
            return
        if self._taken is not None:
            taken, self._taken = self._taken, None
            taken.callback(None)
        elif self._answered is not None:
            request, self._answered = self._answered, None
            super().requestDone(request)

    def loseConnection(self) -> None:
        self._start_unread_timer()  # a client that does not read the last bytes keeps the connection open, too
        super().loseConnection()  # which may end it at once, and the timer with it

    def _start_unread_timer(self) -> None:
        if self._unread is None:
            self._acknowledged = acknowledged_bytes(self.transport)
            self._unread = self.callLater(UNREAD_SECONDS, self._check_progress)

    def _check_progress(self) -> None:
        # The kernel takes more from the transport only when a third of its own buffer is free, which may be a MiB: for
        # a client on a slow line that can take longer than UNREAD_SECONDS.
        self._unread = None
        if acknowledged_bytes(self.transport) - self._acknowledged < TAKEN_BYTES:
            self.cut()
        else:
            self._start_unread_timer()

    def _stop_unread_timer(self) -> None:
        if self._unread is not None and self._unread.active():
            self._unread.cancel()
        self._unread = None

    def discard_unsent(self) -> None:
        """Drop the unsent rest of a reply; the connection is cut once the client reads on, or at UNREAD_SECONDS.

        It is not cut at once: an attacker would connect again at once, at a higher cost than one stalled connection.
        """
        self._discarded = True
        self._unsent.clear()

    def cut(self) -> None:
        """Close the connection at once, whatever is still unsent."""
        self.transport.abortConnection()


def acknowledged_bytes(transport: Any) -> int:
    """How many bytes the client has acknowledged on this connection; 0 where that can't be told, as of a unix socket.

    The field tcpi_bytes_acked of Linux' struct tcp_info.
    """
    try:
        handle = getattr(transport, "transport", transport).getHandle()  # below TLS is a transport, too
        info = handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED_AT + 8)
        (count,) = unpack_from("Q", info, _ACKED_AT)
    except (AttributeError, OSError, struct_error):
        return 0
    return int(count)
