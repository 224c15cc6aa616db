"""The factory of channels."""

import re
from collections.abc import Callable, Mapping
from functools import partial

from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IAddress, IProtocolNegotiationFactory
from twisted.internet.protocol import ServerFactory
from twisted.web.resource import IResource
from zope.interface import implementer

from ...access.client_address import Networks, OriginResolver
from ...process.metrics import Metrics
from .access_log import AccessLog
from .channel import Channel
from .connections import Connections
from .reply import Refusal
from .request import Request


@implementer(IProtocolNegotiationFactory)
class Site(ServerFactory):
    """Builds a channel for each accepted connection.

    `resource` is a leaf and serves every path. `admit_body` raises Refused for a request whose body, of that
    size, it will not read. `cors_origins` may read replies, but for those of paths that match `without_cors`.
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
        body_refusals: Mapping[tuple[bytes, bytes], Refusal],
        without_cors: re.Pattern[bytes],
        admit_body: Callable[[Request, int], None],
    ) -> None:
        self.resource = resource
        self.connections = Connections(reactor=reactor)
        access_log = AccessLog(metrics=metrics, seconds=reactor.seconds)
        self._make_channel = partial(
            Channel,
            reactor=reactor,
            connections=self.connections,
            access_log=access_log,
            body_refusals=body_refusals,
            make_request=partial(
                Request,
                resource=resource,
                reactor=reactor,
                access_log=access_log,
                resolver=OriginResolver(trusted_proxies),
                cors_origins=cors_origins,
                without_cors=without_cors,
                admit_body=admit_body,
            ),
        )

    def buildProtocol(self, address: IAddress | None) -> Channel:
        return self._make_channel()

    def acceptableProtocols(self) -> list[bytes]:
        """HTTP/1.1 alone, for clients that negotiate a protocol over TLS (RFC 7301)."""
        return [b"http/1.1"]
