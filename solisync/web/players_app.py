"""Who sends a request to the players' listener: docs/security.md "Tokens and sessions"."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from twisted.internet.defer import Deferred

from ..access.tokens import AccessClaims, Tokens
from ..errors import Refused
from .app import App
from .restrictions import Restrictions
from .route import Route
from .same_origin import check_same_origin
from .wire.request import Request


class PlayersApp(App):
    """The routes for players: same origin, then access token."""

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

    def _keep_out(self, request: Request) -> None:
        """Raise Refused for a large body of a player who is kept out; drop it later if the database is to be asked."""
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

        Deferred.fromCoroutine(ask())

    def _claims(self, request: Request) -> AccessClaims:
        """What the access token says, which is read once; raises Unauthorized unless it is valid."""
        if request.claims is None:
            request.claims = self._tokens.read_access(request.bearer, self._now())
        return request.claims
