"""The factory of connections: what they share, and how they end together when the service stops."""

from collections.abc import Mapping

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.logger import Logger
from twisted.web import http, server
from twisted.web.resource import IResource

from ..client_address import Networks
from .channel import Channel, WireRequest
from .reply import Refusal
from .request import Request


class Site(server.Site):
    """The factory of channels, which knows them all so that it can wait for them."""

    protocol = Channel  # type: ignore[assignment]  # also does without the negotiation of HTTP/2
    displayTracebacks = False
    noisy = False  # the service says where it listens
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
        text, which it would answer by itself. Nor does it see "//api/me", which it would take for "/api/me".
        """
        if b"%" in request.path or request.path.startswith(b"//"):
            request.postpath = [b"%"]
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

    def log_refusal(self, channel: Channel, request: Request | None, refusal: Refusal) -> None:
        """Log a connection that was refused before there was a whole request, or any part of one."""
        self._log.info(
            "{client} refused: {status} {message} {request_id}",
            client=channel.getPeer() if request is None else request.client_name,
            request_id="" if request is None else request.request_id,
            **refusal._asdict(),
        )

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
