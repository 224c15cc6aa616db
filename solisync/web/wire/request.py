"""One request: the parts that routes use, each read once and checked strictly, and the reply."""

import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from random import getrandbits
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from ...access.client_address import Caller, CallerResolver
from ...access.large_bodies import LARGE_BYTES
from ...errors import BadRequest, Refused, Unauthorized
from ...process.logs import serving
from ...rules.administration import AdminSession
from ...rules.browser_sessions import SessionCookie
from ...rules.sessions import SessionRef
from ...rules.shapes import MAX_BODY
from .access_log import AccessLog
from .body import Body
from .connections import Connections
from .parse import Head
from .reply import NO_STORE, Abandoned, Reply, encode_head

if TYPE_CHECKING:
    from .connection import HttpConnection

INTERNAL = 500
CLIENT_GONE = 499  # nginx's status for a client that hangs up before the reply; only for the log and the metrics
EXPOSED_HEADERS = "Retry-After, X-Request-Id, ETag, Error-Code, Content-Disposition, Suspended-Until, Date"
METHOD_BYTES = 16  # no method in use is longer, and a longer one would make log lines as long as a header
PARAMETERS_MAX = 20

_log = Logger()

_COMPRESSING = {"gzip", "x-gzip", "deflate", "compress", "br", "zstd"}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BEARER = re.compile(r"bearer +(.+)", re.IGNORECASE)


def named_method(method: bytes) -> bytes:
    """Return the method, or UNKNOWN for one that no server has."""
    return method if method.isupper() and len(method) <= METHOD_BYTES else b"UNKNOWN"


class Routed(Protocol):
    """The route of a request."""

    @property
    def endpoint(self) -> str:
        """Its name for klein."""

    @property
    def path(self) -> str:
        """Its path, with the names of its variables."""

    @property
    def private(self) -> bool:
        """Whether its replies must not be cached."""


class Resource(Protocol):
    """What a site serves."""

    def admit(self, request: "Request", size: int | None) -> None:
        """Decide on a request when its head has arrived, by the size of its body, and set `route` and `shared`.

        Raises Abandoned for a body that is too large or compressed, which ends the connection. Raises Refused if the
        request is answered with that error; its body is then counted and dropped as it arrives. The size of a chunked
        body is None. When that body becomes large, this is called with MAX_BODY; when too large, with its size.
        """

    def render(self, request: "Request") -> object:
        """Answer a request that has arrived completely, whatever its path is."""


@dataclass(frozen=True, slots=True)
class SiteParts:
    """What all connections and requests of a site share."""

    resource: Resource
    reactor: ReactorBase
    connections: Connections
    access_log: AccessLog
    resolver: CallerResolver
    cors_origins: frozenset[str]
    idle_seconds: int
    keep_alive: str


class Request:
    """A request with a limited body, kept in memory, the address of its client, and an id.

    `on_gone` is called if the connection is lost before the reply is finished.
    """

    route: "Routed | None" = None  # set by `admit`
    variables: dict[str, str]  # in the path of its route, set by `admit`
    refusal: Refused | None = None  # why it is answered with an error, known before its body has arrived
    shared = True  # whether pages of the origins that the operator lists may read the reply, set by `admit`
    client_key = ""  # how limits know its client, set by the app once it is recognized
    claims: SessionRef | None = None  # of its access token, set by the app
    admin: AdminSession | None = None  # the admin's session, set by the console's app
    admin_cookie: SessionCookie  # set by the console's app
    token_read = False  # whether `bearer` has read a token, valid or not
    code = 200  # of the reply
    answered = False  # whether the reply has begun
    on_gone: Callable[[], None] | None = None
    _whole = False  # whether the whole body has arrived
    _sending: Deferred[None] | None = None  # sends a reply in pieces
    _request_id: str | None = None
    _caller: Caller | None = None
    _parameters: dict[str, list[str]] | None = None  # of the query, once parsed
    _seconds_to_reply = 0.0  # from the beginning of the request to the beginning of its reply

    def __init__(self, connection: "HttpConnection", head: Head) -> None:
        self.connection: HttpConnection | None = connection  # None once the request is finished, or its client has gone
        self.method = named_method(head.method)
        self.uri = head.uri
        self.path = head.path
        self.version = head.version
        self.length = head.length
        self.given = head.fields  # by name in lower case
        self.body = Body()
        self._peer = connection.peer
        self._site: SiteParts = connection.site
        self._began = self._site.reactor.seconds()

    def admit(self, size: int | None) -> None:
        """Ask the resource about a body of this size."""
        try:
            self._site.resource.admit(self, size)
        except Abandoned as error:
            assert self.connection is not None
            self.connection.refuse(error)
        except Refused as reason:
            self.refuse(reason)

    def receive(self, data: bytes) -> None:
        """Add data to the body."""
        body, length = self.body, self.length
        before = body.received
        body.add(data)
        if body.received > MAX_BODY:
            self.admit(body.received)
        elif before <= LARGE_BYTES < body.received and length is None and body.unwanted is None:
            self.admit(MAX_BODY)
        if body.unwanted is None and body.received != length:
            assert self.connection is not None
            self.connection.hold_body(body.received)

    def refuse(self, reason: Refused) -> None:
        """Drop the body, and answer with this error when all of it has arrived."""
        self.refusal = reason
        self.drop_body(reason)

    def drop_body(self, reason: Refused) -> None:
        """Drop the part of the body that has arrived, and the rest; reading the body then raises `reason`."""
        self.body.drop(reason.with_traceback(None))  # the traceback's frames may hold the bytes that have just arrived
        if not self._whole and self.connection is not None:
            self.connection.release_body()

    def handle(self) -> None:
        """Answer the request, whose body is complete."""
        self._whole = True
        serving.set({})  # this may run in the context of the previous request
        try:
            self._site.resource.render(self)
        except Exception:
            _log.failure("could not process a request")
            if not self.answered:
                self.answer(Reply.error("internal", "internal server error"))

    def lost(self) -> None:
        """Stop answering, because the connection is lost."""
        assert self.connection is not None
        streamed = self.connection.streaming is not None
        self.connection = None
        self.body.clear()
        if self.on_gone is not None:
            self.on_gone()
        if self._whole:
            if not self.answered:
                self._seconds_to_reply = self._site.reactor.seconds() - self._began
            if self.code != INTERNAL and not streamed:
                self.code = CLIENT_GONE
            self._log_answer(streamed=streamed)
        if self._sending is not None:
            self._sending.cancel()

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of a header field, one for each line; `name` is in lower case."""
        return self.given.get(name, [])

    def fields(self, name: bytes) -> list[str]:
        """Return the values of a header field as text, one for each line; a value may have any byte (RFC 9110 §5.5).

        `name` is in lower case.
        """
        values = self.given.get(name)
        return [value.decode("latin-1") for value in values] if values else []

    def field(self, name: bytes) -> str | None:
        """Return the value of a header field, or None if it is absent. Several lines make one list (RFC 9110 §5.3)."""
        return ", ".join(self.fields(name)) or None

    def check_query(self) -> None:
        """Raise BadRequest if the query has more than PARAMETERS_MAX parameters, before any of them is read."""
        if self._query_text.count(b"&") >= PARAMETERS_MAX:
            raise BadRequest("bad_query", f"query may have at most {PARAMETERS_MAX} parameters")

    def query(self, name: str) -> list[str]:
        """Return the values of a query parameter, one for each occurrence; the value may be empty.

        Only "&" separates parameters. Raises BadRequest for a query that isn't UTF-8.
        """
        if self._parameters is None:
            self._parameters = self._read_query()
        return self._parameters.get(name, [])

    @property
    def _query_text(self) -> bytes:
        return self.uri.partition(b"?")[2]

    def _read_query(self) -> dict[str, list[str]]:
        parameters: dict[str, list[str]] = {}
        try:
            pairs = parse_qsl(self._query_text.decode("ascii"), keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            raise BadRequest("bad_query", "query must be UTF-8") from None
        for name, value in pairs:
            parameters.setdefault(name, []).append(value)
        return parameters

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
        caller = self._site.resolver.resolve(self._peer, tuple(self.fields(b"x-forwarded-for")))
        if caller.forged:
            self._site.access_log.warn_of_untrusted_proxy(self._peer)
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
        if len(origins) == 1 and origins[0] in self._site.cors_origins:
            return origins[0] if self.shared else None
        if origins and origins[0].partition("://")[2].lower() not in (host.lower() for host in self.fields(b"host")):
            self._site.access_log.warn_of_unlisted_origin(origins[0])  # the service's own pages need no listing
        return None

    def cors_headers(self) -> list[tuple[str, str]]:
        """Return the headers that let an allowed web origin read the reply (Fetch standard §3.2.3)."""
        origin = self.allowed_origin if self.values(b"origin") else None
        if origin is None:
            return [("Vary", "Origin")] if self.shared and self._site.cors_origins else []
        return [
            ("Vary", "Origin"),
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Expose-Headers", EXPOSED_HEADERS),
        ]

    def answer(self, reply: Reply) -> None:
        """Send the reply and end the request, unless the client has gone."""
        self.send(reply)
        if self.connection is None:
            if reply.stream is not None:
                reply.stream.lost(unread=False)
            return
        if reply.stream is not None and self.method != b"HEAD":
            self.connection.begin_stream(self, reply.stream)
        elif reply.pieces is not None and self.method != b"HEAD":
            self._sending = Deferred.fromCoroutine(self._send_pieces(reply.pieces))
        else:
            self.finish()

    async def _send_pieces(self, pieces: AsyncGenerator[bytes, None]) -> None:
        """Send the body and end the request. On failure, cut the connection: the client notices the missing end."""
        assert self.connection is not None
        try:
            await self.connection.sender.send_pieces(pieces, chunked=self.version == b"HTTP/1.1")
        except CancelledError:
            pass  # the client has gone
        except Exception:
            _log.failure("a reply broke off ({request_id})", request_id=self.request_id)
            if self.connection is not None:
                self.code = INTERNAL
                self.connection.cut()
        else:
            if self.connection is not None:
                self._log_answer()
                self.finish()

    def send(self, reply: Reply) -> None:
        """Write and log the reply, unless the client has gone. If klein dispatched the request, klein then ends it."""
        if self.connection is None:
            return
        self.code = reply.status
        self.answered = True
        self.body.clear()
        self._seconds_to_reply = self._site.reactor.seconds() - self._began
        more = self.cors_headers()
        if self.route is not None and self.route.private and "Cache-Control" not in reply.headers:
            more += NO_STORE.items()
        if reply.stream is not None:
            self.connection.persistent = False
        more.append(("Keep-Alive", self._site.keep_alive) if self.connection.persistent else ("Connection", "close"))
        if reply.endless and self.version == b"HTTP/1.1":
            more.append(("Transfer-Encoding", "chunked"))
        head = encode_head(reply, self.request_id, more)
        # one write, because a second one takes 7,000 instructions
        self.connection.sender.write(head if self.method == b"HEAD" else head + reply.body)
        if not reply.endless or self.method == b"HEAD":
            self._log_answer()  # other replies are logged at the end of the body

    def finish(self) -> None:
        """End the request, whose reply is written."""
        self.on_gone = None
        connection, self.connection = self.connection, None
        assert connection is not None
        connection.request_done()

    def finish_stream(self) -> None:
        """Log a stream that has ended, and close the connection when everything is sent."""
        self._log_answer(streamed=True)
        self.finish()

    def _log_answer(self, *, streamed: bool = False) -> None:
        self._site.access_log.answered(
            client=self.caller.name,
            user_id=None if self.claims is None else self.claims.user_id,
            admin=None if self.admin is None else self.admin.admin,
            method=self.method,
            path=self.path,
            route="" if self.route is None else self.route.path,
            status=self.code,
            seconds=self._site.reactor.seconds() - self._began if streamed else self._seconds_to_reply,
            streamed=streamed,
            request_id=self.request_id,
        )
