"""The console: its routes, their OpenAPI document, and the site for its listener.

The app identifies admins by their sessions, and refuses other requests: docs/console.md "Who gets in".
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from twisted.internet.base import ReactorBase

from ...access.large_bodies import LargeBodies
from ...access.rate_limit import WRONG_CODES, LocalRateLimit
from ...errors import Forbidden, Unauthorized
from ...postgres.database import Database
from ...rules.administration import COOKIE, SESSION_LIFETIME
from ...rules.browser_sessions import SessionCookie, host_of, is_loopback, is_secure
from ...rules.recovery import digest
from ...settings.settings import ServingSettings
from ...storage.operators import admins
from ..app import App, check_same_origin
from ..handler_limits import ExpensiveQueries
from ..process_parts import Parts
from ..resources.openapi import Interface, OpenApi
from ..route import Route, Tagged, routes_of
from ..wire.reply import Reply
from ..wire.request import Request
from ..wire.site import Site
from .acts import Acts
from .declaring import get
from .inspections import Inspections
from .overviews import Overviews
from .pages import page_routes
from .players import PlayerViews
from .replays import ReplayViews
from .signing_in import LiveSecrets, SigningIn

INTERFACE = Interface(
    "solisync console",
    "The API of the console, where admins look after players. It has a separate listener.",
    {
        "session": "Sessions of admins",
        "players": "Players, and acts on them",
        "replays": "Replays, and acts on them",
        "service": "The state of the service, new content, and the record of acts",
        "docs": "The description of this API",
    },
    ("session", {"type": "apiKey", "in": "cookie", "name": "solisync-admin"}),
)


class AdminCallers:
    """Checks the host of a request, then the page that sent it, then the session.

    `hosts` are names besides loopback under which the console is served over HTTPS. If there are any, only pages under
    these names may change something, and cookies are limited to HTTPS.
    """

    def __init__(self, *, database: Database, hosts: frozenset[str], reactor: ReactorBase) -> None:
        self._database = database
        self._hosts = hosts
        self._sessions = LiveSecrets(partial(database.run, admins.live_sessions), reactor=reactor)

    def _is_for_console(self, request: Request) -> bool:
        """Whether the host is the console's; pages of another could otherwise read the replies (DNS rebinding)."""
        host = host_of(request.fields(b"host"))
        # a host in an absolute URI would override that one (RFC 9112 §3.2.2)
        return request.uri.startswith(b"/") and host is not None and (host in self._hosts or is_loopback(host))

    def recognize(self, request: Request, route: Route | None) -> str:
        """Return the address; raises Forbidden unless the request is for the console, and from one of its pages."""
        if not self._is_for_console(request):
            raise Forbidden
        if route is None:
            return request.caller.bucket
        request.admin_cookie = SessionCookie.read(
            COOKIE, SESSION_LIFETIME, request.fields(b"cookie"), secure=bool(self._hosts)
        )
        if route.same_origin:
            check_same_origin(request)
            if self._hosts and not (
                is_secure(request.fields(b"origin")) and host_of(request.fields(b"host")) in self._hosts
            ):
                raise Forbidden
        elif route.protected and request.fields(b"sec-fetch-site") not in ([], ["same-origin"]):
            raise Forbidden
        return request.caller.bucket

    async def permit(self, request: Request, _: Route) -> None:
        """Find the admin of the session, who is the client of limits from now on; raises Unauthorized."""
        token = request.admin_cookie.token
        if token is None or request.fields(b"authorization"):
            raise Unauthorized
        secret = digest(token)
        if not await self._sessions.knows(secret):
            raise Unauthorized
        request.admin = await self._database.run(admins.find, secret)
        if request.admin is None:
            self._sessions.forget(secret)
            raise Unauthorized
        request.client_key = request.admin.admin

    async def refuse_guest(self, _: str) -> None:
        """Do nothing: no admin is a guest."""


class ConsoleOpenApi(OpenApi):
    """Serves the document of the console to admins."""

    def __init__(self, routes: Callable[[], tuple[Route, ...]]) -> None:
        super().__init__(routes, INTERFACE)

    @get("/openapi.json", name="openapi", summary="Describe this API")
    async def document(self) -> Reply:
        return await super().document()


def console_routes(resources: Sequence[Tagged], settings: ServingSettings) -> tuple[Route, ...]:
    """Return all routes of the console, given its resources."""
    served = *resources, ConsoleOpenApi(lambda: table)
    table = (*chain.from_iterable(routes_of(resource, settings) for resource in served), *page_routes())
    return table


def make_console(parts: Parts) -> Site:
    """Build the site of the console, which doesn't listen yet."""
    settings, database, reactor, now = parts.settings, parts.database, parts.reactor, parts.now
    refused = parts.metrics.refused
    expensive = ExpensiveQueries()
    resources = (
        SigningIn(
            database=database,
            reactor=reactor,
            wrong_codes=LocalRateLimit(WRONG_CODES, reactor=reactor, on_refusal=refused),
        ),
        PlayerViews(settings=settings, database=database, reactor=reactor, expensive=expensive),
        ReplayViews(settings=settings, database=database, timelines=parts.timelines),
        Overviews(database=database, reactor=reactor, now=now),
        Inspections(settings=settings, database=database, reactor=reactor, expensive=expensive),
        Acts(
            settings=settings,
            database=database,
            publish=parts.bus.publish,
            forget=parts.forget_lists,
            passwords=parts.passwords,
            reactor=reactor,
            now=now,
        ),
    )
    app = App(
        console_routes(resources, settings),
        callers=AdminCallers(database=database, hosts=settings.admin_hosts, reactor=reactor),
        reactor=reactor,
        limiter=parts.limiter,
        large_bodies=LargeBodies(seconds=reactor.seconds, on_refusal=partial(refused, LargeBodies.name)),
        metrics=parts.metrics,
    )
    return Site(
        app,
        reactor,
        metrics=parts.metrics,
        trusted_proxies=settings.trusted_proxies,
        trust_unix=False,
        cors_origins=frozenset(),
        access_lines=settings.access_log,
        idle_seconds=settings.idle_seconds,
    )
