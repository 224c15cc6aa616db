"""The factory of connections: what they share, and how they end together when the service stops."""

from collections.abc import Mapping
from contextlib import suppress
from time import time

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.logger import Logger, LogLevel
from twisted.web import http, server
from twisted.web.resource import IResource

from ...access.client_address import Networks, OriginResolver
from ...process.metrics import Metrics
from .backpressure import BackpressureChannel
from .channel import Channel, WireRequest
from .reply import Refusal
from .request import Request

GRACE_SECONDS = 1.0
LOGGED_PATH_BYTES = 256  # ours are shorter; what many processes write to one pipe stays whole up to 4,096
UNREAD_MAX = 16 * 2**20  # bytes of answers that wait for clients who don't read, of all connections together


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
        metrics: Metrics,
        body_refusals: Mapping[tuple[bytes, bytes], Refusal],
    ) -> None:
        super().__init__(resource, requestFactory=WireRequest, parsePOSTFormSubmission=False, reactor=reactor)
        self.reactor = reactor
        self._metrics = metrics
        self.clients = OriginResolver(trusted_proxies)
        self.cors_origins = cors_origins
        self.body_refusals = body_refusals
        self.channels: set[Channel] = set()
        self._unread: dict[BackpressureChannel, int] = {}  # in the order in which they stalled
        self._unread_bytes = 0
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
        method = request.method.decode("ascii")
        path = request.path[:LOGGED_PATH_BYTES].decode("ascii", "backslashreplace")
        seconds = request.age_seconds
        milliseconds = round(seconds * 1000, 1)
        self._metrics.answered(method if request.route else "", request.route, request.code, seconds)
        # What Logger.info() would make of it, in half the time: nothing is logged as often.
        client, request_id = request.caller.name, request.request_id
        log = self._log
        log.observer(
            {
                "log_logger": log,
                "log_level": LogLevel.info,
                "log_namespace": log.namespace,
                "log_source": None,
                "log_format": "{line}",
                "log_time": time(),
                "line": f"{client} {method} {path} {request.code} {milliseconds} ms {request_id}",
                "client": client,
                "user_id": request.player,
                "method": method,
                "route": request.route or None,
                "path": path,
                "status": request.code,
                "milliseconds": milliseconds,
                "request_id": request_id,
            }
        )

    def log_refusal(self, channel: Channel, request: Request | None, refusal: Refusal) -> None:
        """Log a connection that was refused before there was a whole request, or any part of one."""
        self._metrics.requests.labels("", "", refusal.status).inc()
        self._log.info(
            "{client} refused: {status} {message} {request_id}",
            client=channel.getPeer() if request is None else request.caller.name,
            request_id="" if request is None else request.request_id,
            **refusal._asdict(),
        )

    def warn_of_untrusted_proxy(self, peer: str | None) -> None:
        """Say once that somebody sends X-Forwarded-For and is not believed."""
        if not self._warned:
            self._warned = True
            self._log.warn(
                "ignoring X-Forwarded-For from {peer}, which is not in SOLISYNC_TRUSTED_PROXIES;"
                " if it is your proxy, every player behind it shares one rate limit until you list it there",
                peer=peer,
            )

    def hold(self, channel: BackpressureChannel, size: int) -> None:
        """A client has stopped reading with so much of an answer left in memory.

        When there is too much of that, those are given up first who have read nothing for longest: not the client
        that is merely slow while others, who mean harm, stand still.
        """
        self._unread_bytes += size - self._unread.get(channel, 0)
        self._unread[channel] = size
        while self._unread_bytes > UNREAD_MAX:
            longest = next(iter(self._unread))
            self.release(longest)
            longest.abandon()

    def release(self, channel: BackpressureChannel) -> None:
        """The client has read on, or has gone."""
        self._unread_bytes -= self._unread.pop(channel, 0)

    def forget(self, channel: Channel) -> None:
        """A connection has ended."""
        self.release(channel)
        self.channels.discard(channel)
        if not self.channels and self._drained is not None:
            drained, self._drained = self._drained, None
            drained.callback(None)

    def announce_end(self) -> None:
        """Answer with `Connection: close` from now on."""
        self.draining = True
        for channel in list(self.channels):
            channel.drain()

    async def drain(self, seconds: float) -> None:
        """Let every request that runs end, for up to `seconds`, then cut what is left.

        A connection between two requests is kept for GRACE_SECONDS more: the next request may be on its way.
        """
        if not await self._ended_within(min(GRACE_SECONDS, seconds)):
            for channel in list(self.channels):
                channel.close_if_idle()
        if not await self._ended_within(seconds - min(GRACE_SECONDS, seconds)):
            self._log.warn("cut {count} connections that did not end in time", count=len(self.channels))
            for channel in list(self.channels):
                channel.cut()

    async def _ended_within(self, seconds: float) -> bool:
        """Whether all connections end by themselves in so many seconds."""
        if self.channels:
            self._drained = Deferred()
            with suppress(TimeoutError):
                await self._drained.addTimeout(seconds, self.reactor)
            self._drained = None
        return not self.channels
