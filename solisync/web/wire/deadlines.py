"""The timers of a connection: one for all deadlines of reading, and one for a client that doesn't read."""

import socket
from collections.abc import Callable
from struct import error as struct_error
from struct import unpack_from
from typing import TYPE_CHECKING

from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IDelayedCall

from .transport import SocketTransport, below_tls

if TYPE_CHECKING:
    from .connection import HttpConnection

UNREAD_SECONDS = 30.0
PROBE_SECONDS = 0.5
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"  # a client that didn't ask for it may discard it (RFC 9110 §15.2.1)
TAKEN_BYTES = 65_536  # which a client must take in that time
_ACKED_AT = 120  # in struct tcp_info


class Deadline:
    """Makes a call at the latest time that was set.

    Fast path: replaces a timer for each of a request's four deadlines, 60,000 instructions, see docs/performance.md. A
    timer that is due before the deadline keeps running, and is set again when it fires.
    """

    __slots__ = ("_at", "_call", "_reactor", "_timer")

    def __init__(self, call: Callable[[], None], *, reactor: ReactorBase) -> None:
        self._call = call
        self._reactor = reactor
        self._at: float | None = None
        self._timer: IDelayedCall | None = None

    def set(self, seconds: float) -> None:
        """Make the call in so many seconds, not earlier or later."""
        self._at = at = self._reactor.seconds() + seconds
        if self._timer is not None and self._timer.getTime() > at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._reactor.callLater(seconds, self._ring)

    def clear(self) -> None:
        """Make no call until another time is set."""
        self._at = None

    def stop(self) -> None:
        """Make no call any more, and free the timer."""
        self._call = _nothing  # the method was a part of a cycle with the connection
        self._at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        if self._at is not None:
            left = self._at - self._reactor.seconds()
            if left > 0:
                self._timer = self._reactor.callLater(left, self._ring)
            else:
                self._call()


def _nothing() -> None:
    """The call of a deadline that was stopped."""


class UnreadTimer:
    """While it runs, cuts the connection if its client takes less than TAKEN_BYTES in UNREAD_SECONDS."""

    __slots__ = ("_acknowledged", "_reactor", "_timer", "_transport")

    def __init__(self, transport: SocketTransport, *, reactor: ReactorBase) -> None:
        self._transport = transport
        self._reactor = reactor
        self._timer: IDelayedCall | None = None
        self._acknowledged = 0  # bytes at the start of the timer

    def start(self) -> None:
        """Start the timer, unless it runs already."""
        if self._timer is None:
            self._acknowledged = acknowledged_bytes(self._transport)
            self._timer = self._reactor.callLater(UNREAD_SECONDS, self._check_progress)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_progress(self) -> None:
        # Acknowledged bytes are counted, because the kernel takes more from the transport only when a third of its
        # buffer is free. That may be a MiB, for which a client on a slow line needs more than UNREAD_SECONDS.
        self._timer = None
        if acknowledged_bytes(self._transport) - self._acknowledged < TAKEN_BYTES:
            self._transport.abortConnection()
        else:
            self.start()


def acknowledged_bytes(transport: SocketTransport) -> int:
    """Return the number of bytes that the client has acknowledged, or 0 if unknown, as on a unix socket.

    Reads the field tcpi_bytes_acked of Linux's struct tcp_info.
    """
    try:
        info = below_tls(transport).getHandle().getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED_AT + 8)
        (count,) = unpack_from("Q", info, _ACKED_AT)
    except (AttributeError, OSError, struct_error):
        return 0
    return int(count)


class HalfCloseProbe:
    """Detects a client that has hung up while its request is handled, and cuts the connection.

    At the end of the input, a client that waits for its reply (`nc -N`) looks like one that has hung up. They differ
    when something is sent to them: only the latter's socket responds with a reset. So the service sends an interim
    response, which any client may ignore, before a slow reply. A waiting client gets its answer (RFC 9112 §9.6). If the
    client has hung up, the request is cancelled.

    Only for TCP and unix sockets: Twisted ends a TLS connection at the end of its input.
    """

    def __init__(self, connection: "HttpConnection") -> None:
        self._connection = connection
        self._timer: IDelayedCall | None = None
        self._probed = False

    @property
    def running(self) -> bool:
        """Whether another check is due."""
        return self._timer is not None

    def start(self) -> None:
        """Check for a reset every PROBE_SECONDS, until the request is answered."""
        if self._timer is None:
            self._timer = self._connection.site.reactor.callLater(PROBE_SECONDS, self._look_for_reset)

    def stop(self) -> None:
        """Stop checking, because the connection is lost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_for_reset(self) -> None:
        self._timer = None
        connection = self._connection
        request = connection.request
        if request is None:
            return
        # Reading can't detect the reset: after the end of its input, a socket reports only that end.
        if connection.transport.getHandle().getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            connection.cut()
            return
        if not self._probed and not request.answered and request.version == b"HTTP/1.1":
            self._probed = True
            connection.transport.write(INTERIM)
        if connection.streaming is None:  # on a stream, a heartbeat detects it
            self.start()
