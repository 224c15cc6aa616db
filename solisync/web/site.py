"""The wire: ceilings and deadlines that hold before a request exists (contract §0, RFC 9112).

Twisted reads whole bodies of any size, parses forms before routing, and restarts its idle timer on every byte. So
the channel here refuses early and keeps absolute deadlines. It overrides private methods of HTTPChannel, which is
why setup.py bounds Twisted from above: raise that bound once tests/test_wire.py passes.
"""

from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.logger import Logger
from twisted.protocols.basic import LineReceiver
from twisted.python.failure import Failure
from twisted.web import http, server
from twisted.web.resource import IResource

from ..client_address import Networks
from .reply import encode_refusal
from .request import Request

MAX_BODY = 1_048_576
MAX_HEADER_BYTES = 16_384
MAX_HEADERS = 100
HEADER_SECONDS = 10.0
BODY_SECONDS = 30.0
UNREAD_SECONDS = 30.0
IDLE_SECONDS = 60.0
LINGER_SECONDS = 2.0


class Refusal(NamedTuple):
    """A whole answer that needs no request."""

    status: int
    message: str


BAD_REQUEST = Refusal(400, "bad request")
TIMED_OUT = Refusal(408, "request timed out")
BODY_TOO_LARGE = Refusal(413, "request body must be at most 1 MB")
HEADER_TOO_LARGE = Refusal(431, "request header too large")


class Channel(http.HTTPChannel):
    """One connection. Its timer counts from the first byte of a request, then from the end of its header."""

    maxHeaders = MAX_HEADERS
    totalHeadersSize = MAX_HEADER_BYTES

    site: "Site"
    transport: Any  # TCP, TLS or a unix socket: each can abort, but no interface of Twisted's says so
    timeOut: float | None  # type: ignore[assignment]
    _receiving = False  # between the first byte of a request and its last
    _refused = False
    _unread: IDelayedCall | None = None

    def connectionMade(self) -> None:
        self.timeOut = HEADER_SECONDS
        super().connectionMade()
        self.site.channels.add(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.site.forget(self)
        self._stop_unread_timer()
        super().connectionLost(reason)

    # Deadlines.

    def dataReceived(self, data: bytes) -> None:
        if self._refused:
            return
        if not self._receiving and not self._handlingRequest:
            self._receiving = True
            self.setTimeout(HEADER_SECONDS)
        LineReceiver.dataReceived(self, data)  # past HTTPChannel's, which would restart the timer

    def allContentReceived(self) -> None:
        if self._refused:
            return
        self._receiving = False
        self.timeOut = IDLE_SECONDS  # what comes back when this request is done, which may be inside the next line
        super().allContentReceived()

    def timeoutConnection(self) -> None:
        if self._receiving:
            self.refuse(TIMED_OUT)
        else:
            self.loseConnection()

    def pauseProducing(self) -> None:
        # The transport calls this when its buffer is full, and resumeProducing when all of it has gone out.
        super().pauseProducing()
        self._start_unread_timer()

    def resumeProducing(self) -> None:
        self._stop_unread_timer()
        super().resumeProducing()

    def loseConnection(self) -> None:
        super().loseConnection()
        self._start_unread_timer()  # what is still buffered may keep a connection open for as long

    def _start_unread_timer(self) -> None:
        if self._unread is None:
            self._unread = self.callLater(UNREAD_SECONDS, self._cut)

    def _stop_unread_timer(self) -> None:
        if self._unread is not None and self._unread.active():
            self._unread.cancel()
        self._unread = None

    def _cut(self) -> None:
        self.transport.abortConnection()

    # Parsing.

    def lineReceived(self, line: bytes) -> None:
        if self._refused:
            return
        if line[:1] in (b" ", b"\t"):  # obsolete folding, or space before the first field: both may be refused
            self.refuse(BAD_REQUEST)
        else:
            super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        if not self._refused:
            super().rawDataReceived(data)

    def lineLengthExceeded(self, line: bytes) -> None:
        self.refuse(HEADER_TOO_LARGE)

    def _maybeChooseTransferDecoder(self, header: bytes, data: bytes) -> bool:
        unreadable = (header == b"Content-Length" and len(data) > 18) or (  # int() refuses thousands of digits
            header == b"Transfer-Encoding" and (data.lower() != b"chunked" or self._version == b"HTTP/1.0")
        )
        if unreadable:
            self.refuse(BAD_REQUEST)
        return not unreadable and super()._maybeChooseTransferDecoder(header, data)

    def allHeadersReceived(self) -> None:
        if self._refused:
            return
        hosts = self.requests[-1].requestHeaders.getRawHeaders(b"Host", [])
        if len(hosts) > 1 or (not hosts and self._version == b"HTTP/1.1"):
            self.refuse(BAD_REQUEST)
        else:
            self.setTimeout(BODY_SECONDS)
            super().allHeadersReceived()

    def checkPersistence(self, request: http.Request, version: bytes) -> bool:
        if not super().checkPersistence(request, version):
            return False
        if self.site.draining:
            request.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        return not self.site.draining

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
        request = self.requests[-1] if self._receiving and self.requests else None
        head_only = getattr(self, "_command", b"") == b"HEAD"
        self.site.log_refusal(self, refusal)
        self.transport.write(encode_refusal(request, refusal.status, refusal.message, head_only=head_only))
        self.transport.unregisterProducer()
        half_close = getattr(self.transport, "loseWriteConnection", None)
        if half_close is None:
            self.loseConnection()
        else:
            half_close()
            self._abortingCall = self.callLater(LINGER_SECONDS, self.forceAbortClient)

    def forceAbortClient(self) -> None:
        self._abortingCall = None
        self._cut()

    # Draining.

    def drain(self) -> None:
        """Close this connection once the request on it, if any, is answered."""
        if self._handlingRequest:
            self.persistent = False
            for request in self.requests:
                if not request.startedWriting:
                    request.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        elif not self._receiving:
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
        path = self.channel._path.partition(b"?")[0]
        refusals = self.channel.site.body_refusals
        self.channel.refuse(refusals.get((self.channel._command, path), BODY_TOO_LARGE))


class Site(server.Site):
    """The factory of channels, which knows them all so that it can wait for them."""

    protocol = Channel  # type: ignore[assignment]  # also does without the negotiation of HTTP/2
    displayTracebacks = False
    _log = Logger()

    def __init__(
        self,
        resource: IResource,
        reactor: ReactorBase,
        *,
        trusted_proxies: Networks,
        cors_origins: frozenset[str],
        body_refusals: Mapping[tuple[bytes, bytes], Refusal],
    ) -> None:
        super().__init__(resource, requestFactory=WireRequest, parsePOSTFormSubmission=False, reactor=reactor)
        self.reactor = reactor
        self.trusted_proxies = trusted_proxies
        self.cors_origins = cors_origins
        self.body_refusals = body_refusals
        self.channels: set[Channel] = set()
        self.draining = False
        self._drained: Deferred[None] | None = None
        self._warned = False

    def getResourceFor(self, request: server.Request) -> IResource:
        """The routes, where a path must be spelled plainly: no path of ours needs percent-encoding.

        So "/api%2Fme" is not "/api/me" to us and something else to a proxy, and klein never meets a path that is no
        text, which it would answer by itself.
        """
        if b"%" in request.path or not request.path.isascii():
            request.postpath = [b""]
        resource: IResource = super().getResourceFor(request)
        return resource

    def log(self, request: http.Request) -> None:
        """Log one line for each answer, without query strings or anything else that may be secret."""
        assert isinstance(request, Request)
        self._log.info(
            "{client} {method} {path} {status} {milliseconds:.1f} ms {request_id}",
            client=request.client_name,
            method=request.method.decode("ascii"),
            path=request.path.decode("ascii", "backslashreplace"),
            status=request.code,
            milliseconds=request.age_seconds * 1000,
            request_id=request.request_id,
        )

    def log_refusal(self, channel: Channel, refusal: Refusal) -> None:
        """Log a connection that was refused before there was a request."""
        self._log.info("{peer} refused: {status} {message}", peer=channel.getPeer(), **refusal._asdict())

    def warn_of_untrusted_proxy(self, peer: str) -> None:
        """Say once that somebody sends X-Forwarded-For and is not believed."""
        if not self._warned:
            self._warned = True
            self._log.warn(
                "ignoring X-Forwarded-For from {peer}, which is not in SOLISYNC_TRUSTED_PROXIES;"
                " if it is your proxy, every player behind it shares one rate limit until you list it there",
                peer=peer,
            )

    def forget(self, channel: Channel) -> None:
        """A connection has ended."""
        self.channels.discard(channel)
        if not self.channels and self._drained is not None:
            drained, self._drained = self._drained, None
            drained.callback(None)

    async def drain(self, seconds: float) -> None:
        """Let every request that runs end, for up to `seconds`, then cut what is left."""
        self.draining = True
        for channel in list(self.channels):
            channel.drain()
        if not self.channels:
            return
        self._drained = Deferred()
        try:
            await self._drained.addTimeout(seconds, self.reactor)
        except TimeoutError:
            self._drained = None
            self._log.warn("cut {count} connections that did not end in time", count=len(self.channels))
            for channel in list(self.channels):
                channel.transport.abortConnection()
