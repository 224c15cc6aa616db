"""One request: the parts that routes use, each read once and checked strictly, and the reply."""

import re
from collections.abc import AsyncGenerator, Callable
from random import getrandbits
from typing import Any

from twisted.internet.address import UNIXAddress
from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.resource import IResource

from ...access.client_address import Caller, CallerResolver
from ...access.large_bodies import LARGE_BYTES
from ...access.tokens import AccessClaims
from ...errors import Refused, Unauthorized
from ...process.logs import serving
from ...rules.administration import AdminSession
from ...rules.browser_sessions import SessionCookie
from ...rules.shapes import MAX_BODY
from .access_log import AccessLog
from .body import Body
from .lean_request import LeanRequest
from .reply import NO_STORE, Refusal, Reply, encode_head
from .streaming import ConnectionOutlet

INTERNAL = 500
CLIENT_GONE = 499  # nginx's status for a client that hangs up before the reply; only for the log and the metrics
EXPOSED_HEADERS = "Retry-After, X-Request-Id, ETag, Error-Code, Content-Disposition, Suspended-Until, Date"
METHOD_BYTES = 16  # no method in use is longer, and a longer one would make log lines as long as a header

_log = Logger()

_COMPRESSING = {"gzip", "x-gzip", "deflate", "compress", "br", "zstd"}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BEARER = re.compile(r"bearer +(.+)", re.IGNORECASE)


def named_method(method: bytes) -> bytes:
    """Return the method, or UNKNOWN for one that no server has."""
    return method if method.isupper() and len(method) <= METHOD_BYTES else b"UNKNOWN"


class Request(LeanRequest):
    """A request with a limited body, kept in memory, the address of its client, and an id.

    `resource` is a leaf and serves every path. `admit` is called with the size of the body when the head has arrived,
    and sets `route` and `shared`. It returns the error for a body that is too large or compressed, which ends the
    connection. It raises Refused if the resource won't read the body, which is then counted and dropped as it arrives.
    The size of a chunked body is None. When that body becomes large, `admit` is called with MAX_BODY; when too large,
    with its size.
    """

    target: bytes  # the path in the request target, set by the channel
    route: Any = None  # a solisync.web.route.Route, set by `admit`
    variables: dict[str, str]  # in the path of its route, set by `admit`
    unrouted: Exception | None = None  # why there is no route, set by `admit`
    shared = True  # whether pages of the origins that the operator lists may read the reply, set by `admit`
    claims: AccessClaims | None = None  # of its access token, set by the app
    admin: AdminSession | None = None  # the admin's session, set by the console's app
    admin_cookie: SessionCookie  # set by the console's app
    token_read = False  # whether `bearer` has read a token, valid or not
    _whole = False  # whether the whole body has arrived
    _sending: Deferred[None] | None = None  # sends a reply in pieces
    _request_id: str | None = None
    _caller: Caller | None = None
    _seconds_to_reply = 0.0  # from the beginning of the request to the beginning of its reply

    def __init__(
        self,
        channel: Any,
        queued: object = None,  # only Twisted's channel passes it
        *,
        resource: IResource,
        reactor: ReactorBase,
        access_log: AccessLog,
        resolver: CallerResolver,
        cors_origins: frozenset[str],
        admit: Callable[["Request", int | None], Refusal | None],
        keep_alive: str,
    ) -> None:
        super().__init__(channel)
        self.body = Body()
        self._resource = resource
        self._access_log = access_log
        self._resolver = resolver
        self._cors_origins = cors_origins
        self._admit = admit
        self._keep_alive = keep_alive
        self._seconds: Callable[[], float] = reactor.seconds
        self._began = reactor.seconds()

    def gotLength(self, length: int | None) -> None:
        try:
            refusal = self._admit(self, length)
        except Refused as reason:
            self.drop_body(reason)
        else:
            if refusal is not None:
                self.channel.refuse(refusal)

    def handleContentChunk(self, data: bytes) -> None:
        body, length = self.body, self.channel.length
        before = body.received
        body.add(data)
        if body.received > MAX_BODY:
            self.gotLength(body.received)
        elif before <= LARGE_BYTES < body.received and length is None and body.unwanted is None:
            self.gotLength(MAX_BODY)
        if body.unwanted is None and body.received != length:
            self.channel.hold_body(body.received)

    def drop_body(self, reason: Refused) -> None:
        """Drop the part of the body that has arrived, and the rest; reading the body then raises `reason`."""
        self.body.drop(reason.with_traceback(None))  # the traceback's frames may hold the bytes that have just arrived
        if not self._whole and self.channel is not None:
            self.channel.release_body()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Render the resource."""
        self.method, self.uri, self.clientproto = named_method(command), path, version
        self._whole = True
        serving.set({})  # this may run in the context of the previous request
        self.path = self.target
        # Fast path: skips server.Request.process and its unused headers, 20,000 instructions, see docs/performance.md
        try:
            self.render(self._resource)
        except Exception:
            self.processingFailed(Failure())

    def processingFailed(self, reason: Failure) -> Failure:
        """Send the error 500 if the resource itself fails; Twisted would send an HTML page."""
        _log.failure("could not process a request", reason)
        if not self.startedWriting:
            self.answer(Reply.error("internal", "internal server error"))
        return reason

    def connectionLost(self, reason: Failure) -> None:
        unanswered = self._whole and not self.finished
        streamed = unanswered and self.channel.streaming is not None  # an answered request has lost its channel
        self.body.clear()
        super().connectionLost(reason)
        if unanswered:
            if not self.startedWriting:
                self._seconds_to_reply = self._seconds() - self._began
            if self.code != INTERNAL and not streamed:
                self.code = CLIENT_GONE
            self._log_answer(streamed=streamed)
        if self._sending is not None:
            self._sending.cancel()

    # Fast path: avoids functools.cached_property, which takes a lock in Python 3.11, 3,000 instructions for each of the
    # two, see docs/performance.md

    @property
    def request_id(self) -> str:
        """The client's X-Request-Id if it is valid, else a new id."""
        if self._request_id is None:
            given = self.fields(b"x-request-id")
            # Fast path: avoids uuid4().hex, one call of the kernel and 10,000 instructions, see docs/performance.md
            own = len(given) != 1 or not _REQUEST_ID.fullmatch(given[0])
            self._request_id = f"{getrandbits(128):032x}" if own else given[0]
        return self._request_id

    @property
    def caller(self) -> Caller:
        """The client behind any trusted proxies."""
        if self._caller is None:
            self._caller = self._resolve()
        return self._caller

    def _resolve(self) -> Caller:
        peer = self.getClientAddress()
        host = None if isinstance(peer, UNIXAddress) else peer.host  # None means a unix socket, whose peer is trusted
        caller = self._resolver.resolve(host, tuple(self.fields(b"x-forwarded-for")))
        if caller.forged:
            self._access_log.warn_of_untrusted_proxy(host)
        return caller

    @property
    def bearer(self) -> str:
        """The bearer token, its scheme in any case (RFC 6750 §2.1); raises Unauthorized unless there is exactly one."""
        headers = self.fields(b"authorization")
        match = _BEARER.fullmatch(headers[0]) if len(headers) == 1 else None
        if match is None:
            raise Unauthorized
        self.token_read = True
        return match[1]

    @property
    def has_compressed_body(self) -> bool:
        """Whether Content-Encoding names a coding that compresses; others are unknown, and ignored (RFC 9110 §8.4)."""
        codings = self.field(b"content-encoding")
        return codings is not None and any(each.strip(" \t") in _COMPRESSING for each in codings.lower().split(","))

    @property
    def allowed_origin(self) -> str | None:
        """The Origin header, if this origin may read the reply."""
        origins = self.fields(b"origin")
        if len(origins) == 1 and origins[0] in self._cors_origins:
            return origins[0] if self.shared else None
        if origins and origins[0].partition("://")[2].lower() not in (host.lower() for host in self.fields(b"host")):
            self._access_log.warn_of_unlisted_origin(origins[0])  # the service's own pages need no listing
        return None

    def cors_headers(self) -> list[tuple[str, str]]:
        """Return the headers that let an allowed web origin read the reply (Fetch standard §3.2.3)."""
        origin = self.allowed_origin if self.values(b"origin") else None
        if origin is None:
            return [("Vary", "Origin")] if self.shared and self._cors_origins else []
        return [
            ("Vary", "Origin"),
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Expose-Headers", EXPOSED_HEADERS),
        ]

    def answer(self, reply: Reply) -> None:
        """Send the reply and end the request, unless the client has gone."""
        self.send(reply)
        if self._disconnected:
            if reply.stream is not None:
                reply.stream.lost(unread=False)
            return
        if reply.stream is not None and self.method != b"HEAD":
            self.channel.streaming = ConnectionOutlet(self, reply.stream)
        elif reply.pieces is not None and self.method != b"HEAD":
            self._sending = Deferred.fromCoroutine(self._send_pieces(reply.pieces))
        else:
            self.finish()

    async def _send_pieces(self, pieces: AsyncGenerator[bytes, None]) -> None:
        """Send the body and end the request. On failure, cut the connection: the client notices the missing end."""
        try:
            await self.channel.send_pieces(pieces, chunked=self.clientproto == b"HTTP/1.1")
        except CancelledError:
            pass  # the client has gone
        except Exception:
            _log.failure("a reply broke off ({request_id})", request_id=self.request_id)
            if not self._disconnected:
                self.code = INTERNAL
                self.channel.cut()
        else:
            if not self._disconnected:
                self._log_answer()
                self.finish()

    def send(self, reply: Reply) -> None:
        """Write and log the reply, unless the client has gone. If klein dispatched the request, klein then ends it."""
        if self._disconnected:
            return
        self.code = reply.status
        self.startedWriting = True
        self.body.clear()
        self._seconds_to_reply = self._seconds() - self._began
        more = self.cors_headers()
        if self.route is not None and self.route.private and "Cache-Control" not in reply.headers:
            more += NO_STORE.items()
        if reply.stream is not None:
            self.channel.persistent = False
        more.append(("Keep-Alive", self._keep_alive) if self.channel.persistent else ("Connection", "close"))
        if reply.endless and self.clientproto == b"HTTP/1.1":
            more.append(("Transfer-Encoding", "chunked"))
        head = encode_head(reply, self.request_id, more)
        # Fast path: saves a second write, 7,000 instructions, see docs/performance.md
        self.channel.write(head if self.method == b"HEAD" else head + reply.body)
        if not reply.endless or self.method == b"HEAD":
            self._log_answer()  # other replies are logged at the end of the body

    def finish_stream(self) -> None:
        """Log a stream that has ended, and close the connection when everything is sent."""
        self._log_answer(streamed=True)
        self.finish()

    def _log_answer(self, *, streamed: bool = False) -> None:
        self._access_log.answered(
            client=self.caller.name,
            user_id=None if self.claims is None else self.claims.user_id,
            admin=None if self.admin is None else self.admin.admin,
            method=self.method,
            path=self.path,
            route="" if self.route is None else self.route.path,
            status=self.code,
            seconds=self._seconds() - self._began if streamed else self._seconds_to_reply,
            streamed=streamed,
            request_id=self.request_id,
        )
