"""The console, wired: its routes and their OpenAPI document, on its own listener."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import chain

from twisted.internet.base import ReactorBase

from ...access.large_bodies import LargeBodies
from ...access.passwords import Passwords
from ...access.rate_limit import RateLimiter
from ...checking.timelines import Timelines
from ...events.live import Live
from ...postgres.database import Database
from ...process.metrics import Metrics
from ...settings.settings import ServingSettings
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
    "solisync administration",
    "Administration of players and their data, on a listener of its own.",
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

    @get("/openapi.json", name="openapi", summary="This interface")
    async def document(self) -> Reply:
        return await super().document()


def console_routes(resources: Sequence[object], settings: ServingSettings) -> tuple[Route, ...]:
    """Every route of the console's listener, given its resources."""
    served = *resources, ConsoleOpenApi(lambda: table)
    table = (*chain.from_iterable(routes_of(resource, settings) for resource in served), *page_routes())
    return table


def make_console(
    settings: ServingSettings,
    reactor: ReactorBase,
    *,
    database: Database,
    metrics: Metrics,
    live: Live,
    timelines: Timelines,
    passwords: Passwords,
    now: Callable[[], datetime],
) -> Site:
    """Build the site of the console, which listens nowhere yet."""

    def on_refusal(name: str) -> None:
        metrics.refusals.labels(name).inc()

    expensive = ExpensiveQueries()
    resources = (
        SigningIn(database=database, reactor=reactor),
        PlayerViews(database=database, reactor=reactor, expensive=expensive),
        ReplayViews(database=database, timelines=timelines),
        Overviews(database=database, reactor=reactor, now=now),
        Inspections(settings=settings, database=database, reactor=reactor, expensive=expensive),
        Acts(database=database, publish=live.bus.publish, passwords=passwords, reactor=reactor, now=now),
    )
    app = AdminsApp(
        console_routes(resources, settings),
        database=database,
        hosts=settings.admin_hosts,
        reactor=reactor,
        limiter=RateLimiter(database=database, reactor=reactor, on_refusal=on_refusal),
        large_bodies=LargeBodies(seconds=reactor.seconds, on_refusal=lambda: on_refusal(LargeBodies.name)),
        metrics=metrics,
    )
    return Site(
        app,
        reactor,
        trusted_proxies=settings.trusted_proxies,
        trust_unix=False,
        cors_origins=frozenset(),
        metrics=metrics,
        admit=app.admit,
    )
