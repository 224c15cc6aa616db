"""The site for players. Its app identifies players by their tokens, and refuses restricted ones.

The reasons are in docs/security.md "Tokens and sessions".
"""

import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred

from ..access.tokens import Tokens
from ..errors import DatabaseError, Forbidden, Refused, Unauthorized, Unavailable
from ..events.streams import raise_limit
from ..postgres.database import Database
from ..rules.administration import suspension_error
from ..rules.sessions import SessionRef
from ..storage.players import guests, restrictions
from .app import App, check_same_origin
from .error_replies import as_json, as_page
from .parts import Parts
from .resources import player_routes
from .resources.html_pages import Pages
from .route import Route
from .shared_cache import SECONDS, CoalescingCache
from .wire.request import Request
from .wire.site import Site

OTHER_DESCRIPTORS = 64  # files, pipes and sockets besides connections of players
FEWEST_CONNECTIONS = 16  # with whatever limit of open files


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The suspensions with end and message, and the cutoffs of access tokens, by player, as of `number`."""

    number: int = -1
    suspended: dict[str, tuple[datetime | None, str | None]] = field(default_factory=dict)
    cutoffs: dict[str, int] = field(default_factory=dict)


class Restrictions:
    """The suspensions and cutoffs, at most SECONDS old. Without requests, there are no queries.

    Each query compares a number, which database triggers raise on a change, and loads the restrictions only if the
    number has changed. `on_change` is then called with the count of suspended players.
    """

    def __init__(
        self, *, database: Database, reactor: ReactorBase, on_change: Callable[[int], None] = lambda count: None
    ) -> None:
        self._database = database
        self._reactor = reactor
        self._on_change = on_change
        self._loaded = _Loaded()
        self._behind = 0  # the retention clock, by which suspensions end
        self._until = 0.0
        self._loading = CoalescingCache(self._load, reactor=reactor)

    @property
    def fresh(self) -> bool:
        """Whether `check` may be called without a `refresh` first."""
        # Fast path: avoids awaiting `refresh` for each request, a coroutine each, see docs/performance.md
        return self._reactor.seconds() < self._until

    async def refuse_guest(self, player: str) -> None:
        """Raise Forbidden for a guest. A check before the work is enough, because no player becomes a guest."""
        if await self._database.run(guests.is_guest, player):
            raise Forbidden("guest", "a guest can't do this")

    async def refresh(self) -> None:
        """Load changes from the database, unless loaded within SECONDS; raises Unavailable if that fails."""
        try:
            await self._loading.get()
        except DatabaseError:
            raise Unavailable from None

    def check(self, claims: SessionRef) -> None:
        """Raise Forbidden if the player is suspended, and Unauthorized if the token is cut off."""
        suspension = self._loaded.suspended.get(claims.user_id)
        if suspension is not None:
            raise suspension_error(*suspension, self._behind)
        cutoff = self._loaded.cutoffs.get(claims.user_id)
        if cutoff is not None and claims.expiry <= cutoff:
            raise Unauthorized

    async def _load(self) -> None:
        began = self._reactor.seconds()
        found = await self._database.run(restrictions.load, self._loaded.number)
        self._behind = found.behind
        if found.suspended is not None:
            ends = zip(found.untils or (), found.messages or (), strict=True)
            suspended = dict(zip(found.suspended, ends, strict=True))
            cutoffs = dict(zip(found.cut_off or (), found.cutoffs or (), strict=True))
            self._loaded = _Loaded(found.number, suspended, cutoffs)
            self._on_change(len(suspended))
        self._until = began + SECONDS


class PlayersApp(App):
    """The routes for players. Checks the origin of the request, then its access token."""

    def __init__(
        self,
        routes: tuple[Route, ...],
        *,
        tokens: Tokens,
        restrictions: Restrictions,
        now: Callable[[], datetime],
        **common: Any,
    ) -> None:
        super().__init__(routes, **common)
        self._tokens = tokens
        self._restrictions = restrictions
        self._now = now

    def _recognize(self, request: Request, route: Route) -> str:
        if route.same_origin:
            check_same_origin(request)
        return self._claims(request).user_id if route.protected else request.caller.bucket

    async def _authenticate(self, request: Request) -> str:
        claims = self._claims(request)
        if not self._restrictions.fresh:
            await self._restrictions.refresh()
        self._restrictions.check(claims)
        return claims.user_id

    async def _refuse_guest(self, client: str) -> None:
        await self._restrictions.refuse_guest(client)

    def _keep_out(self, request: Request) -> None:
        """Raise Refused for a large body of a restricted player; if that needs a query, drop the body after it."""
        claims = self._claims(request)
        if self._restrictions.fresh:
            self._restrictions.check(claims)
            return

        async def ask() -> None:
            try:
                await self._restrictions.refresh()
                self._restrictions.check(claims)
            except Refused as reason:
                request.drop_body(reason)

        Deferred.fromCoroutine(ask()).addErrback(lambda failure: self._log.failure("could not check a player", failure))

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
    app = PlayersApp(
        player_routes(parts, pages),
        reactor=parts.reactor,
        limiter=parts.limiter,
        large_bodies=parts.large_bodies,
        tokens=parts.tokens,
        restrictions=Restrictions(
            database=parts.database, reactor=parts.reactor, on_change=parts.metrics.suspended.set
        ),
        metrics=parts.metrics,
        observer=parts.history.observe,
        now=parts.now,
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
