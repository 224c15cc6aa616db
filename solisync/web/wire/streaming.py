"""Streams on connections: sent in chunks (RFC 9112 §7.1), or to HTTP/1.0 clients until the connection ends."""

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ...events.stream import Outlet
from ...rules.events import HEARTBEAT
from .transport import SocketTransport

if TYPE_CHECKING:
    from .connection import HttpConnection
    from .request import Request

BUFFER_BYTES = 1_024  # buffered by the transport before the stream counts as full
SEND_BUFFER_BYTES = 8_192  # buffered by the kernel, which doubles this value
USER_TIMEOUT_MS = 60_000  # after which the kernel drops a client that acknowledges nothing
LAST_CHUNK = b"0\r\n\r\n"


class StreamBody(Protocol):
    """The source of a stream's data."""

    def begin(self, outlet: Outlet) -> None:
        """Start writing to this outlet."""

    def drained(self) -> None:
        """Continue: the outlet isn't full any more."""

    def lost(self, *, unread: bool) -> None:
        """Stop: the connection is lost, perhaps before `begin`. `unread` means that the client did not read."""


class ConnectionOutlet:
    """The outlet of a stream on a request's connection. The request remains only to write its log line at the end."""

    __slots__ = ("_body", "_chunked", "_connection", "_request")

    def __init__(self, connection: "HttpConnection", request: "Request", body: StreamBody) -> None:
        self._connection = connection
        self._request = request
        self._chunked = request.version == b"HTTP/1.1"
        self._body = body
        request.given = {}  # frees the header fields, most of a request's memory
        _bound_buffers(connection.transport)

    @property
    def full(self) -> bool:
        """Whether the client has stopped reading, so that the buffers are full."""
        return bool(self._connection.sender.full)

    def write(self, data: bytes) -> None:
        """Send data."""
        self._connection.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end(self, data: bytes) -> None:
        """Send the last data and close the connection; cut the connection if the outlet is full."""
        if self.full:
            self._connection.cut()
            return
        self.write(data)
        if self._chunked:
            self._connection.transport.write(LAST_CHUNK)
        self._request.finish_stream()

    def probe(self) -> None:
        """Write a heartbeat, so that the socket of a client that has hung up responds with a reset."""
        if not self.full:
            self.write(HEARTBEAT)

    def drained(self) -> None:
        """Notify the body that the transport has taken all data."""
        self._body.drained()

    def lost(self) -> None:
        """Notify the body that the connection is lost."""
        self._body.lost(unread=self.full)


def _bound_buffers(transport: SocketTransport) -> None:
    """Shrink the buffers, because old events are useless to a client that lags."""
    lowest: Any = getattr(transport, "transport", transport)  # TLS wraps the TCP transport
    lowest.bufferSize = BUFFER_BYTES
    with suppress(AttributeError, OSError):  # the transport may have no socket
        handle = lowest.getHandle()
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
