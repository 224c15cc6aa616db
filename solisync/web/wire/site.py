"""The factory of connections."""

import sys

from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IAddress, IProtocolNegotiationFactory
from twisted.internet.protocol import ServerFactory
from zope.interface import implementer

from ...access.client_address import CallerResolver, Networks
from ...process.metrics import Metrics
from .access_log import AccessLog
from .connection import HttpConnection
from .connections import Connections
from .request import Resource, SiteParts

ANNOUNCED_SECONDS = 5  # by which the announced idle time is shorter, so that clients close first


@implementer(IProtocolNegotiationFactory)
class Site(ServerFactory):
    """Makes the connections of a listener, which serve `resource`.

    `cors_origins` may read the replies to `shared` requests. With `trust_unix`, peers at a unix socket may name the
    address of their client.
    """

    noisy = False  # the service logs where it listens

    def __init__(
        self,
        resource: Resource,
        reactor: ReactorBase,
        *,
        trusted_proxies: Networks,
        cors_origins: frozenset[str],
        metrics: Metrics,
        trust_unix: bool = True,
        idle_seconds: int = 120,
        most_connections: int = sys.maxsize,
        access_lines: bool = True,
    ) -> None:
        self.resource = resource
        self.connections = Connections(reactor=reactor, most=most_connections)
        self._parts = SiteParts(
            resource=resource,
            reactor=reactor,
            connections=self.connections,
            access_log=AccessLog(metrics=metrics, seconds=reactor.seconds, lines=access_lines),
            resolver=CallerResolver(trusted_proxies, trust_unix=trust_unix),
            cors_origins=cors_origins,
            idle_seconds=idle_seconds,
            keep_alive=f"timeout={idle_seconds - ANNOUNCED_SECONDS}",
        )

    def buildProtocol(self, address: IAddress | None) -> HttpConnection:
        return HttpConnection(self._parts)

    def acceptableProtocols(self) -> list[bytes]:
        """Return HTTP/1.1 alone, for clients that negotiate a protocol over TLS (RFC 7301)."""
        return [b"http/1.1"]
