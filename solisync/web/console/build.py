"""Builds the console: its routes, their OpenAPI document, and the site for its listener."""

from collections.abc import Callable, Sequence
from itertools import chain

from ...access.large_bodies import LargeBodies
from ...access.rate_limit import RateLimiter
from ...settings.settings import ServingSettings
from ..parts import Parts
from ..resources.openapi import Interface, OpenApi
from ..route import Route, routes_of
from ..wire.reply import Reply
from ..wire.site import Site
from .acts import Acts
from .app import AdminsApp
from .pages import page_routes
from .players import PlayerViews
from .replays import ReplayViews
from .route import ExpensiveQueries, get
from .service import Inspections, Overviews
from .signing_in import SigningIn

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


class ConsoleOpenApi(OpenApi):
    """Serves the document of the console to admins."""

    def __init__(self, routes: Callable[[], tuple[Route, ...]]) -> None:
        super().__init__(routes, INTERFACE)

    @get("/openapi.json", name="openapi", summary="Describe this API")
    async def document(self) -> Reply:
        return await super().document()


def console_routes(resources: Sequence[object], settings: ServingSettings) -> tuple[Route, ...]:
    """Return all routes of the console, given its resources."""
    served = *resources, ConsoleOpenApi(lambda: table)
    table = (*chain.from_iterable(routes_of(resource, settings) for resource in served), *page_routes())
    return table


def make_console(parts: Parts) -> Site:
    """Build the site of the console, which doesn't listen yet."""
    make, settings = parts.make, parts.settings

    def on_refusal(name: str) -> None:
        parts.metrics.refusals.labels(name).inc()

    expensive = ExpensiveQueries()
    resources = (
        make(SigningIn),
        make(PlayerViews, expensive=expensive),
        make(ReplayViews),
        make(Overviews),
        make(Inspections, expensive=expensive),
        make(Acts, publish=parts.bus.publish),
    )
    app = AdminsApp(
        console_routes(resources, settings),
        database=parts.database,
        hosts=settings.admin_hosts,
        reactor=parts.reactor,
        limiter=make(RateLimiter, on_refusal=on_refusal),
        large_bodies=LargeBodies(seconds=parts.reactor.seconds, on_refusal=lambda: on_refusal(LargeBodies.name)),
        metrics=parts.metrics,
    )
    return make(
        Site,
        resource=app,
        admit=app.admit,
        trusted_proxies=settings.trusted_proxies,
        trust_unix=False,
        cors_origins=frozenset(),
        access_lines=settings.access_log,
    )
