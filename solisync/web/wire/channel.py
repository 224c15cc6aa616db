"""One connection: ceilings and deadlines that hold before a request exists (contract §0, RFC 9112).

Twisted reads whole bodies of any size and restarts its idle timer on every byte. So the channel here refuses early and
keeps absolute deadlines. It overrides private methods of HTTPChannel, which is why setup.py bounds Twisted from above:
raise that bound once tests/wire passes.
"""

from io import BytesIO
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IAddress, IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.protocols.basic import LineReceiver
from twisted.python.failure import Failure
from twisted.web import http

from .backpressure import BackpressureChannel
from .reply import Refusal, Reply, encode_refusal
from .request import Request
from .syntax import Chunks, has_bare_line_end, is_host, is_malformed, target_path

if TYPE_CHECKING:
    from .site import Site

MAX_BODY = 1_048_576
MAX_HEADER_BYTES = 16_384
MAX_HEADERS = 100
HEADER_SECONDS = 10.0
BODY_SECONDS = 30.0
IDLE_SECONDS = 60.0
LINGER_SECONDS = 2.0
LINGER_BYTES = 8 * MAX_BODY

BAD_REQUEST = Refusal(400, "bad request")
TIMED_OUT = Refusal(408, "request timed out")
BODY_TOO_LARGE = Refusal(413, "request body must be at most 1 MB")
HEADER_TOO_LARGE = Refusal(431, "request header too large")


class Channel(BackpressureChannel):
    """One connection. Its timer counts from the first byte of a request, then from the end of its header."""

    maxHeaders = MAX_HEADERS
    totalHeadersSize = MAX_HEADER_BYTES

    site: "Site"
    transport: Any  # TCP, TLS or a unix socket: each can abort, but no interface of Twisted's says so
    timeOut: float | None  # type: ignore[assignment]
    _deadline: float | None = None
    _timer: IDelayedCall | None = None
    _receiving = False  # between the first byte of a request and its last
    _refused = False
    _dropped = 0

    def connectionMade(self) -> None:
        self._here: IAddress = super().getHost()  # Twisted would ask the kernel again for each request
        self._there: IAddress = super().getPeer()
        self.timeOut = HEADER_SECONDS
        super().connectionMade()
        self.site.channels.add(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.site.forget(self)
        super().connectionLost(reason)
        if self._timer is not None:
            self._timer.cancel()

    def getHost(self) -> IAddress:
        return self._here

    def getPeer(self) -> IAddress:
        return self._there

    # Receiving, against the clock.

    def dataReceived(self, data: bytes) -> None:
        if self._refused:
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.cut()
            return
        nested = self._busyReceiving
        self._begin()
        LineReceiver.dataReceived(self, data)  # past HTTPChannel's, which would restart the timer
        if self.line_mode and self._buffer and not nested and not self._refused:
            self._begin()  # the start of a pipelined request may have come with the end of the last one
            if has_bare_line_end(self._buffer):
                self.refuse(BAD_REQUEST)

    def _begin(self) -> None:
        if not self._receiving and not self._handlingRequest:
            self._receiving = True
            self.setTimeout(HEADER_SECONDS)

    def allContentReceived(self) -> None:
        if self._refused:
            return
        self._receiving = False
        self.timeOut = IDLE_SECONDS  # what comes back when this request is done, which may be inside the next line
        super().allContentReceived()

    def setTimeout(self, period: float | None) -> float | None:
        # The deadline moves several times with each request; a timer that is due before it may ring, and is set anew.
        before, self.timeOut = self.timeOut, period
        self._deadline = None if period is None else self.site.reactor.seconds() + period
        if self._timer is not None and self._deadline is not None and self._timer.getTime() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and period is not None:
            self._timer = self.callLater(period, self._ring)
        return before

    def _ring(self) -> None:
        self._timer = None
        if self._deadline is not None:
            left = self._deadline - self.site.reactor.seconds()
            if left > 0:
                self._timer = self.callLater(left, self._ring)
            else:
                self.timeoutConnection()

    def timeoutConnection(self) -> None:
        if self._receiving:
            self.refuse(TIMED_OUT)
        else:
            self.loseConnection()

    # Parsing.

    def lineReceived(self, line: bytes) -> None:
        if self._refused:
            return
        if not self._receiving:
            self._begin()
        if is_malformed(line):
            self.refuse(BAD_REQUEST)
        else:
            super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        if not self._refused:
            super().rawDataReceived(data)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(HEADER_TOO_LARGE)

    def _maybeChooseTransferDecoder(self, header: bytes, data: bytes) -> bool:
        if header == b"Content-Length" and data.isdigit():
            data = data.lstrip(b"0")[:18] or b"0"  # enough to be too large; int() fails on thousands of digits
        if header != b"Transfer-Encoding":
            return bool(super()._maybeChooseTransferDecoder(header, data))
        if data.lower() != b"chunked" or self._version == b"HTTP/1.0":
            self.refuse(BAD_REQUEST)
            return False
        if not super()._maybeChooseTransferDecoder(header, data):
            return False
        self._transferDecoder = Chunks(self.requests[-1].handleContentChunk, self._finishRequestBody)
        return True

    def allHeadersReceived(self) -> None:
        if self._refused:
            return
        hosts = self.requests[-1].requestHeaders.getRawHeaders(b"Host", [])
        if (
            target_path(self._path) is None
            or len(hosts) > 1
            or (not hosts and self._version == b"HTTP/1.1")
            or not all(map(is_host, hosts))
        ):
            self.refuse(BAD_REQUEST)
        else:
            self.setTimeout(BODY_SECONDS)
            super().allHeadersReceived()

    def checkPersistence(self, request: http.Request, version: bytes) -> bool:
        options = b",".join(request.requestHeaders.getRawHeaders(b"Connection", [])).lower().split(b",")
        asks_to_close = b"close" in (option.strip(b" \t") for option in options)
        return version == b"HTTP/1.1" and not asks_to_close and not self.site.draining

    def _send100Continue(self) -> None:
        if not self._refused:
            super()._send100Continue()

    def _respondToBadRequestAndDisconnect(self) -> None:
        too_much = self._receivedHeaderSize > MAX_HEADER_BYTES or self._receivedHeaderCount > MAX_HEADERS
        self.refuse(HEADER_TOO_LARGE if too_much else BAD_REQUEST)

    # Refusing.

    def refuse(self, refusal: Refusal) -> None:
        """Answer now, read and drop what still comes for a moment so that the answer gets through, then close."""
        if self._refused:
            return
        self._refused = True
        self.persistent = False
        self.setTimeout(None)
        request = self.requests[-1] if self.requests else None
        head_only = getattr(self, "_command", b"") == b"HEAD"
        self.site.log_refusal(self, request, refusal)
        self.transport.write(encode_refusal(request, refusal, head_only=head_only))
        # TLS has no half-closed connections; what looks like one there would end the TCP below it.
        half_close = None if self.isSecure() else getattr(self.transport, "loseWriteConnection", None)
        self._abortingCall = self.callLater(LINGER_SECONDS, self.forceAbortClient)
        if half_close is None:
            self.loseConnection()
        else:
            self.transport.unregisterProducer()
            half_close()

    def forceAbortClient(self) -> None:
        self._abortingCall = None
        self.cut()

    # Draining.

    def drain(self) -> None:
        """Close this connection once the request on it is answered; without one, the next will find out by itself."""
        if self.requests:
            self.persistent = False

    def close_if_idle(self) -> None:
        """Close this connection if no request is on it."""
        if not self.requests and not self._receiving:
            self.loseConnection()


class WireRequest(Request):
    """A request whose body has a ceiling and stays in memory."""

    channel: Channel
    _received = 0

    def gotLength(self, length: int | None) -> None:
        self.content = BytesIO()
        if length is not None and length > MAX_BODY:
            self._refuse_body()

    def handleContentChunk(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > MAX_BODY:
            self._refuse_body()
        else:
            self.content.write(data)

    def _refuse_body(self) -> None:
        path = target_path(self.channel._path) or b""
        self.channel.refuse(self.site.body_refusals.get((self.channel._command, path), BODY_TOO_LARGE))

    def processingFailed(self, reason: Failure) -> Failure:
        """The last resort, when the routes fail as a whole: Twisted's own page would be HTML."""
        self._log.failure("could not process a request", reason)
        if not self.startedWriting and not self._disconnected:
            self.write(Reply.error(500, "internal server error").send(self))
            self.finish()
        return reason
