"""The site for players: docs/security.md "Tokens and sessions"."""

import resource
import sys
from collections.abc import Callable
from datetime import datetime

from ..access.restrictions import Restrictions
from ..access.tokens import Tokens
from ..events.streams import raise_limit
from ..process.tasks import Task
from ..rules.sessions import SessionRef
from .app import App, check_same_origin
from .error_replies import as_json, as_page
from .process_parts import Parts
from .resources import player_routes
from .resources.html_pages import Pages
from .route import Route
from .wire.request import Request
from .wire.site import Site

OTHER_DESCRIPTORS = 64  # files, pipes and sockets besides connections of players
FEWEST_CONNECTIONS = 16  # with whatever limit of open files


class PlayerCallers:
    """Recognizes a player by the access token, others by their address."""

    def __init__(self, *, tokens: Tokens, restrictions: Restrictions, now: Callable[[], datetime]) -> None:
        self._tokens = tokens
        self._restrictions = restrictions
        self._now = now

    def recognize(self, request: Request, route: Route | None) -> str:
        """Return the player of a protected route, else the address; the origin of the request is checked first."""
        if route is not None and route.same_origin:
            check_same_origin(request)
        protected = route is not None and route.protected
        return self._claims(request).user_id if protected else request.caller.bucket

    def permit(self, request: Request, _: Route) -> Task[None] | None:
        """Refuse restricted players."""
        claims = self._claims(request)
        # Fast path: avoids a coroutine for each request, see docs/performance.md
        if not self._restrictions.fresh:
            return self._ask(claims)
        self._restrictions.check(claims)
        return None

    async def _ask(self, claims: SessionRef) -> None:
        await self._restrictions.refresh()
        self._restrictions.check(claims)

    async def refuse_guest(self, client: str) -> None:
        await self._restrictions.refuse_guest(client)

    def _claims(self, request: Request) -> SessionRef:
        """Return the claims of the access token, which is read once; raises Unauthorized unless it is valid."""
        if request.claims is None:
            request.claims = self._tokens.read_access(request.bearer, self._now())
        return request.claims


def room_for_connections(limit: int, database_connections: int) -> int:
    """The number of players' connections that a process may have with this limit of open files."""
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(limit - OTHER_DESCRIPTORS - database_connections, FEWEST_CONNECTIONS)


def make_site(parts: Parts) -> Site:
    """Build the site, which doesn't listen yet."""
    settings = parts.settings
    pages = None
    if settings.pages:
        pages = Pages(
            database=parts.database,
            site_name=settings.site_name,
            site_url=settings.site_url,
            site_links=settings.site_links,
            public_avatars=settings.public_avatars,
        )
    restrictions = Restrictions(database=parts.database, reactor=parts.reactor, on_change=parts.metrics.suspended.set)
    app = App(
        player_routes(parts, pages),
        callers=PlayerCallers(tokens=parts.tokens, restrictions=restrictions, now=parts.now),
        reactor=parts.reactor,
        limiter=parts.limiter,
        large_bodies=parts.large_bodies,
        metrics=parts.metrics,
        observer=parts.history.observe,
        handler_seconds=parts.handler_seconds,
        present_error=as_json if pages is None else as_page(pages),
    )
    return Site(
        app,
        parts.reactor,
        metrics=parts.metrics,
        trusted_proxies=settings.trusted_proxies,
        cors_origins=settings.cors_origins,
        access_lines=settings.access_log,
        idle_seconds=settings.idle_seconds,
        most_connections=room_for_connections(raise_limit(), settings.database_connections),
    )
