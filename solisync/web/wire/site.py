"""The factory of channels, one for each accepted connection."""

import sys
from collections.abc import Callable
from functools import partial

from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IAddress, IProtocolNegotiationFactory
from twisted.internet.protocol import ServerFactory
from twisted.web.resource import IResource
from zope.interface import implementer

from ...access.client_address import CallerResolver, Networks
from ...process.metrics import Metrics
from .access_log import AccessLog
from .channel import ANNOUNCED_SECONDS, Channel
from .connections import Connections
from .reply import Refusal
from .request import Request


@implementer(IProtocolNegotiationFactory)
class Site(ServerFactory):
    """Builds a channel for each accepted connection.

    `resource` is a leaf and serves every path. `admit` decides on each request when its head has arrived, see Request.
    `cors_origins` may read the replies to `shared` requests. With `trust_unix`, peers at a unix socket may name the
    address of their client.
    """

    noisy = False  # the service logs where it listens

    def __init__(
        self,
        resource: IResource,
        reactor: ReactorBase,
        *,
        trusted_proxies: Networks,
        cors_origins: frozenset[str],
        metrics: Metrics,
        admit: Callable[[Request, int | None], Refusal | None],
        trust_unix: bool = True,
        idle_seconds: int = 120,
        most_connections: int = sys.maxsize,
        access_lines: bool = True,
    ) -> None:
        self.resource = resource
        self.connections = Connections(reactor=reactor, most=most_connections)
        access_log = AccessLog(metrics=metrics, seconds=reactor.seconds, lines=access_lines)
        self._make_channel = partial(
            Channel,
            reactor=reactor,
            connections=self.connections,
            access_log=access_log,
            idle_seconds=idle_seconds,
            make_request=partial(
                Request,
                resource=resource,
                reactor=reactor,
                access_log=access_log,
                resolver=CallerResolver(trusted_proxies, trust_unix=trust_unix),
                cors_origins=cors_origins,
                admit=admit,
                keep_alive=f"timeout={idle_seconds - ANNOUNCED_SECONDS}",
            ),
        )

    def buildProtocol(self, address: IAddress | None) -> Channel:
        return self._make_channel()

    def acceptableProtocols(self) -> list[bytes]:
        """Return HTTP/1.1 alone, for clients that negotiate a protocol over TLS (RFC 7301)."""
        return [b"http/1.1"]
