"""Streams on connections: written in chunks (RFC 9112 §7.1) or, to HTTP/1.0, until the connection ends."""

import socket
from contextlib import suppress
from typing import Any, Protocol

from ...events.stream import Outlet
from ...rules.events import HEARTBEAT

BUFFER_BYTES = 1_024  # what a transport keeps before the stream is full
SEND_BUFFER_BYTES = 8_192  # the same of the kernel, which doubles it
USER_TIMEOUT_MS = 60_000  # for a client that has vanished and acknowledges nothing
LAST_CHUNK = b"0\r\n\r\n"


class StreamBody(Protocol):
    """What is to be written to a stream, and by whom."""

    def begin(self, outlet: Outlet) -> None:
        """Write to this outlet from now on."""

    def drained(self) -> None:
        """The outlet is not full any more."""

    def lost(self, *, unread: bool) -> None:
        """The connection is lost, cut perhaps because the client did not read; there may be no outlet yet."""


class ConnectionOutlet:
    """The outlet of a stream on the connection of a request, of which nothing but the log line is left to do."""

    __slots__ = ("_body", "_channel", "_chunked", "_request")

    def __init__(self, request: Any, body: StreamBody) -> None:
        self._request = request
        self._channel = channel = request.channel
        self._chunked = request.clientproto == b"HTTP/1.1"
        self._body = body
        channel.stop_timer()
        request.given = {}  # the fields of its head, which are most of what a request takes
        _bound_buffers(channel.transport)
        body.begin(self)

    @property
    def full(self) -> bool:
        """Whether the client has stopped to take what it was sent."""
        return bool(self._channel._waitingForTransport)

    def write(self, data: bytes) -> None:
        """Send data."""
        self._channel.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end(self, data: bytes) -> None:
        """Send the last data and close the connection; cut it if it is full."""
        if self.full:
            self._channel.cut()
            return
        self.write(data)
        if self._chunked:
            self._channel.transport.write(LAST_CHUNK)
        self._request.finish_stream()

    def probe(self) -> None:
        """Find out whether a client that sends no more has hung up: then something written to it is reset."""
        if not self.full:
            self.write(HEARTBEAT)

    def drained(self) -> None:
        """The transport has taken all that was written."""
        self._body.drained()

    def lost(self) -> None:
        """The connection is lost."""
        self._body.lost(unread=self.full)


def _bound_buffers(transport: Any) -> None:
    """Keep little for a client that does not read; the oldest events are of no use to it any more."""
    lowest = getattr(transport, "transport", transport)  # below TLS
    lowest.bufferSize = BUFFER_BYTES
    with suppress(AttributeError, OSError):  # a transport without a socket
        handle = lowest.getHandle()
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
