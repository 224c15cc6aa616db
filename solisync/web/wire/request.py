"""A request: what the routes need to know of it, read once and strictly."""

import re
from functools import cached_property
from io import BytesIO
from random import getrandbits
from typing import TYPE_CHECKING, Any

from twisted.internet.address import UNIXAddress
from twisted.python.failure import Failure
from twisted.web import server

from ...access.client_address import Origin
from ...errors import Unauthorized
from ...process.logs import serving
from .syntax import target_path

if TYPE_CHECKING:
    from .site import Site

CLIENT_GONE = 499  # what nginx calls it; no client ever gets to see this

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]+)", re.IGNORECASE)


class Request(server.Request):
    """twisted.web's request, with the client's address, an id, and no guessing."""

    channel: Any  # a solisync.web.wire.channel.Channel; None when the client has gone
    content: BytesIO
    site: "Site"
    defaultContentType = None
    head: bytes  # of the answer
    private = False  # whether no cache may keep the answer
    route = ""  # the template of the route that it took, once it did
    player: str | None = None  # whose valid token it carried
    _whole = False  # whether all of it has arrived

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Klein leaves requests for the garbage collector: what is buffered in a lost connection must not wait for it.
        del self.transport
        self.site = self.channel.site  # from the beginning, and for longer than there is a channel
        self.began: float = self.site.reactor.seconds()

    def process(self) -> None:
        """Hand the request to the routes, in a shape that can't surprise them."""
        self._whole = True
        serving.set({})  # it may have been read in the context of the one before it
        self.path = target_path(self.uri) or self.path  # RFC 9112 §3.2.2: a whole URI is as good as a path
        if not self.method.isupper():  # methods are case-sensitive (RFC 9110 §9.1), werkzeug's matching is not
            self.method = b"UNKNOWN"
        # What server.Request would do, without headers that are Reply's to send.
        self.prepath, self.postpath = [], self.path[1:].split(b"/")
        try:
            self.render(self.site.getResourceFor(self))
        except Exception:
            self.processingFailed(Failure())

    def connectionLost(self, reason: Failure) -> None:
        """The client has gone; its request is logged all the same, if nobody has answered it."""
        unanswered = self._whole and not self.finished
        super().connectionLost(reason)
        if unanswered:
            self.code = CLIENT_GONE
            self.site.log(self)

    def getRequestHostname(self) -> bytes:
        """A constant: no route depends on the Host header, and klein would choke on a strange one."""
        return b"localhost"

    def fields(self, name: bytes) -> list[str]:
        """The values of a header field, one for each line. Any byte may stand in them (RFC 9110 §5.5).

        Twisted's getHeader fails on what is not UTF-8, when it is asked for text.
        """
        values = self.requestHeaders.getRawHeaders(name, [])
        return [value.decode("latin-1") for value in values]

    def field(self, name: bytes) -> str | None:
        """The value of a header field, None when there is none. Several lines make one list (RFC 9110 §5.3)."""
        return ", ".join(self.fields(name)) or None

    @property
    def is_last(self) -> bool:
        """Whether its connection ends with it."""
        return self.channel is None or not self.channel.persistent

    @property
    def age_seconds(self) -> float:
        """Seconds since the request began to arrive."""
        return self.site.reactor.seconds() - self.began

    @cached_property
    def request_id(self) -> str:
        """The client's X-Request-Id when it is a sane one, else a new one."""
        given = self.fields(b"X-Request-Id")
        return given[0] if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]) else f"{getrandbits(128):032x}"

    @cached_property
    def caller(self) -> Origin:
        """Where it comes from."""
        peer = self.getClientAddress()
        host = None if isinstance(peer, UNIXAddress) else peer.host  # one at a unix socket is trusted, and has no name
        client = self.site.clients.find(host, tuple(self.fields(b"X-Forwarded-For")))
        if client.forged:
            self.site.warn_of_untrusted_proxy(host)
        return client

    @property
    def bearer(self) -> str:
        """The bearer token (RFC 6750 §2.1); raises Unauthorized unless there is exactly one."""
        headers = self.fields(b"Authorization")
        match = _BEARER.fullmatch(headers[0]) if len(headers) == 1 else None
        if match is None:
            raise Unauthorized
        return match[1]

    def write(self, data: bytes) -> None:
        """Send the answer, of which this is the whole body, and Reply.send has left the head here."""
        if not self._disconnected:
            self.startedWriting = True
            self.channel.write(self.head if self.method == b"HEAD" else self.head + data)

    def answer(self, body: bytes) -> None:
        """Send the answer with this body and be done, unless the client has gone."""
        if not self._disconnected:
            self.write(body)
            self.finish()

    def body(self) -> bytes:
        """The whole body."""
        return self.content.getvalue()
