"""One connection: its limits and deadlines, and the strict parsing of requests (RFC 9112).

Twisted reads bodies of any size, and restarts its idle timer with every byte. This channel refuses early and has
absolute deadlines. For this it overrides private methods of Twisted, listed in solisync/web/wire/__init__.py.
"""

from collections.abc import Callable

from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IAddress, IHalfCloseableProtocol
from twisted.protocols.basic import LineReceiver
from twisted.python.failure import Failure
from twisted.web import http
from zope.interface import implementer

from ...errors import Unavailable
from ...rules.shapes import MAX_BODY
from .access_log import AccessLog
from .body import Chunks, MalformedChunks
from .connections import Connections
from .deadlines import OneTimer
from .parse import (
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    RequestHead,
    has_bare_line_end,
    is_host,
    is_malformed,
    read_head,
    target_path,
)
from .reply import BAD_REQUEST, HEADER_TOO_LARGE, TIMED_OUT, Refusal, encode_head
from .request import Request
from .sending import BackpressureChannel

HEADER_SECONDS = 10.0
BODY_SECONDS = 30.0
ANNOUNCED_SECONDS = 5  # by which the announced idle time is shorter, so that clients close first
LINGER_SECONDS = 2.0
LINGER_BYTES = 8 * MAX_BODY
ANSWERS_PER_TURN = 16  # otherwise a pipelining connection would occupy the reactor until its buffer is empty


@implementer(IHalfCloseableProtocol)
class Channel(OneTimer, BackpressureChannel):  # type: ignore[misc]  # TimeoutMixin has other types
    """One connection. One timer bounds reading: from the first byte of a request, then from the end of its header."""

    maxHeaders = MAX_HEADERS
    totalHeadersSize = MAX_HEADER_BYTES
    requests: list[Request]
    _receiving = False  # between the first byte of a request and its last
    _answered_in_turn = 0  # requests answered in one call of dataReceived
    _refused = False
    _dropped = 0  # bytes received after a refusal, or during a stream

    def __init__(
        self,
        *,
        reactor: ReactorBase,
        connections: Connections,
        access_log: AccessLog,
        make_request: Callable[..., Request],
        idle_seconds: int,
    ) -> None:
        super().__init__(reactor=reactor, connections=connections)
        self.requestFactory = make_request  # type: ignore[assignment]
        self._seconds = reactor.seconds
        self._idle_seconds = idle_seconds
        self._access_log = access_log

    def connectionMade(self) -> None:
        # Fast path: asks the kernel once, not in each request, two calls, 25,000 instructions, see docs/performance.md
        self._host: IAddress = super().getHost()
        self._peer: IAddress = super().getPeer()
        self.timeOut = HEADER_SECONDS
        super().connectionMade()
        self._connections.register(self)

    def end(self, reason: Failure) -> None:
        self._connections.unregister(self)
        super().end(reason)
        self.stop_timer()

    def readConnectionLost(self) -> None:
        """Handle the end of the input. The transport calls this again each time that reading is resumed."""
        if self._handlingRequest:
            if not self._dataBuffer:
                self.persistent = False
            self.probe()
        elif not self.paused:
            self.loseConnection()

    def getHost(self) -> IAddress:
        return self._host

    def getPeer(self) -> IAddress:
        return self._peer

    def dataReceived(self, data: bytes) -> None:
        if self._refused or self.streaming is not None:
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.cut()
            return
        self._connections.idle.pop(self, None)
        nested = self._busyReceiving
        if not nested:
            self._answered_in_turn = 0
            data = self._read_heads(data)
        if data:
            self._begin()
            LineReceiver.dataReceived(self, data)  # not HTTPChannel's, which restarts the timer
        if self.line_mode and self._buffer and not nested and not self._refused:
            self._begin()  # a pipelined request may begin in the data that ends the previous one
            if self.paused:
                self._networkProducer.pauseProducing()  # otherwise the buffer would grow in each turn
            elif has_bare_line_end(self._buffer):
                self.refuse(BAD_REQUEST)

    def _read_heads(self, data: bytes) -> bytes:
        """Begin the ordinary requests at the beginning of the data, and handle those without a body; returns the rest.

        Stops at a request that waits for its body or its reply.
        """
        while data and self.line_mode and not (self._buffer or self.requests or self.paused or self._refused):
            head = read_head(data) if self.persistent and not self.transport.disconnecting else None
            if head is None:
                break
            data = data[head.end :]
            self._busyReceiving = True
            try:
                self._take(head)
            finally:
                self._busyReceiving = False
            if self.transport.disconnecting:  # data after the last request isn't read
                self._buffer, data = data, b""
        return data

    def _take(self, head: RequestHead) -> None:
        """Begin a request, as Twisted does at the end of a head."""
        request: Request = self.requestFactory(self)  # type: ignore[assignment]
        self.requests.append(request)
        request.given, request.method, request.target = head.fields, head.method, head.path
        self._command, self._path, self._version = head.method, head.uri, b"HTTP/1.1"
        self.persistent = self.checkPersistence(request, b"HTTP/1.1")
        self.length = head.length
        if head.length:
            self._receiving = True
            self.setTimeout(BODY_SECONDS)
            self._transferDecoder = http._IdentityTransferDecoder(
                head.length, request.handleContentChunk, self._finishRequestBody
            )
            self.setRawMode()
        request.gotLength(head.length)
        if not head.length:
            self.allContentReceived()

    def requestDone(self, request: http.Request) -> None:
        self._answered_in_turn += 1
        if self._answered_in_turn == ANSWERS_PER_TURN:
            self._connections.turns.add(self)
        super().requestDone(request)
        if not self.requests and self in self._connections.open:  # sending the reply may have ended the connection
            self._connections.idle[self] = None

    def _put_off(self, rest: bytes) -> None:
        self._buffer = rest
        self._networkProducer.pauseProducing()
        self._connections.turns.add(self)

    def parse_on(self) -> None:
        """Answer some of the requests that have been received, in the connection's turn."""
        self.paused = False
        if not self._waitingForTransport:
            self._networkProducer.resumeProducing()
        if self._buffer:
            self.dataReceived(self.clearLineBuffer())

    def _begin(self) -> None:
        if not self._receiving and not self._handlingRequest:
            self._receiving = True
            self.setTimeout(HEADER_SECONDS)

    def allContentReceived(self) -> None:
        if self._refused:
            return
        self._receiving = False
        self.release_body()
        self.timeOut = self._idle_seconds  # Twisted saves this value, and restores it in requestDone
        super().allContentReceived()

    def timeoutConnection(self) -> None:
        if self._refused:
            self.cut()
        elif self._receiving:
            self.refuse(TIMED_OUT)
        else:
            self.loseConnection()

    def lineReceived(self, line: bytes) -> None:
        if self._refused:
            return
        self._begin()
        if is_malformed(line):
            self.refuse(BAD_REQUEST)
        else:
            super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        try:
            if not self._refused:
                super().rawDataReceived(data)
        except MalformedChunks:
            self.refuse(BAD_REQUEST)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(HEADER_TOO_LARGE)

    def _maybeChooseTransferDecoder(self, header: bytes, data: bytes) -> bool:
        if header == b"Content-Length" and data.isdigit():
            data = data.lstrip(b"0")[:18] or b"0"  # 18 digits are already too large, and int() fails on thousands
        if header == b"Transfer-Encoding" and (data.lower() != b"chunked" or self._version == b"HTTP/1.0"):
            self.refuse(BAD_REQUEST)
            return False
        chosen = bool(super()._maybeChooseTransferDecoder(header, data))
        if chosen and header == b"Transfer-Encoding":
            self._transferDecoder = Chunks(self.requests[-1].handleContentChunk, self._finishRequestBody, self._put_off)
        return chosen

    def allHeadersReceived(self) -> None:
        if self._refused:
            return
        request = self.requests[-1]
        hosts = request.values(b"host") or ([] if self._version == b"HTTP/1.1" else [b""])
        path = target_path(self._path)
        if path is None or len(hosts) != 1 or not is_host(hosts[0]):
            self.refuse(BAD_REQUEST)
        else:
            request.method, request.target = self._command, path
            self.setTimeout(BODY_SECONDS)
            super().allHeadersReceived()

    def checkPersistence(self, request: Request, version: bytes) -> bool:
        options = b",".join(request.values(b"connection")).lower()
        asks_to_close = options and b"close" in [option.strip(b" \t") for option in options.split(b",")]
        return version == b"HTTP/1.1" and not asks_to_close and not self._connections.draining

    def _send100Continue(self) -> None:
        if not self._refused:
            super()._send100Continue()

    def _respondToBadRequestAndDisconnect(self) -> None:
        too_much = self._receivedHeaderSize > MAX_HEADER_BYTES or self._receivedHeaderCount > MAX_HEADERS
        self.refuse(HEADER_TOO_LARGE if too_much else BAD_REQUEST)

    def hold_body(self, size: int) -> None:
        """Count `size` bytes of an unfinished body; may refuse this body, or an older one of another connection."""
        self._connections.unfinished.hold(self, size)

    def release_body(self) -> None:
        """Stop counting an unfinished body."""
        self._connections.unfinished.release(self)

    def refuse(self, refusal: Refusal) -> None:
        """Send an error and close the sending half; cut the connection after LINGER_SECONDS.

        Until then, incoming bytes are read and dropped. Closing with unread bytes would reset the connection, and the
        client could lose the error (RFC 9112 §9.6).
        """
        if self._refused:
            return
        self._refused = True
        self.persistent = False
        self.release_body()
        reply = refusal.reply()
        # Before the line of a request, one without headers has the name of the peer, and an id.
        request: Request = self.requests[-1] if self.requests else self.requestFactory(self)  # type: ignore[assignment]
        request.body.drop(Unavailable())
        self._access_log.refused(refusal, client=request.caller.name, request_id=request.request_id)
        head = encode_head(reply, request.request_id, request.cors_headers())
        head_only = getattr(self, "_command", b"") == b"HEAD"
        self.transport.write(head if head_only else head + reply.body)
        self.setTimeout(LINGER_SECONDS)
        self.end_sending()

    def drain(self) -> None:
        """Close after the current request. If there is none, `checkPersistence` makes the next request the last."""
        if self.requests:
            self.persistent = False

    def close_if_idle(self) -> None:
        """Close unless a request has begun to arrive or is being handled."""
        if not self.requests and not self._receiving:
            self.loseConnection()
