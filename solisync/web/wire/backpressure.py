"""What a connection sends: no faster than the client reads.

Twisted answers pipelined requests whether or not anybody reads the answers, and keeps what is unread in memory.
"""

from collections import deque
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web import http

if TYPE_CHECKING:
    from .site import Site

UNREAD_SECONDS = 30.0
PIECE_BYTES = 16_384  # a transport buffers up to 65,536 bytes and the piece with which it gets full


class BackpressureChannel(http.HTTPChannel):
    """The sending half of a connection: one answer at a time, in pieces, of which one in UNREAD_SECONDS is enough."""

    site: "Site"
    transport: Any  # TCP, TLS or a unix socket: each can abort, but no interface of Twisted's says so
    _abandoned = False
    _unread: IDelayedCall | None = None
    _answered: http.Request | None = None  # a request whose answer is not all sent

    def connectionMade(self) -> None:
        self._unsent: deque[bytes] = deque()
        super().connectionMade()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop_unread_timer()
        self._unsent.clear()  # at once: the collector would come for request and channel much later
        super().connectionLost(reason)

    def write(self, data: bytes) -> None:
        if len(data) <= PIECE_BYTES and not self._unsent and not self._waitingForTransport:
            self.transport.write(data)
            return
        self._unsent.extend(data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
        self._send()

    def _send(self) -> None:
        while self._unsent and not self._waitingForTransport:
            self.transport.write(self._unsent.popleft())

    def requestDone(self, request: http.Request) -> None:
        if self._unsent or self._waitingForTransport:
            self._answered = request
            self._networkProducer.pauseProducing()  # nor read on: the next request would only wait in memory
        else:
            super().requestDone(request)

    def pauseProducing(self) -> None:
        # The transport calls this when its buffer is full, and resumeProducing when all of it has gone out.
        super().pauseProducing()
        self._start_unread_timer()
        self.site.hold(self, sum(map(len, self._unsent)))

    def resumeProducing(self) -> None:
        if self._abandoned:
            self.cut()
            return
        self.site.release(self)
        self._stop_unread_timer()
        super().resumeProducing()
        self._send()
        if self._answered is not None and not self._unsent and not self._waitingForTransport:
            request, self._answered = self._answered, None
            super().requestDone(request)

    def loseConnection(self) -> None:
        super().loseConnection()
        self._start_unread_timer()  # what is still buffered may keep a connection open for as long

    def _start_unread_timer(self) -> None:
        if self._unread is None:
            self._unread = self.callLater(UNREAD_SECONDS, self.cut)

    def _stop_unread_timer(self) -> None:
        if self._unread is not None and self._unread.active():
            self._unread.cancel()
        self._unread = None

    def abandon(self) -> None:
        """Give up what is unsent to a client that reads nothing; it is cut when it reads on, or when its time is up.

        Not now: who means harm would be back at once, and cost more than a connection on which nothing happens.
        """
        self._abandoned = True
        self._unsent.clear()

    def cut(self) -> None:
        """End the connection now, whatever is still to be sent."""
        self.transport.abortConnection()
