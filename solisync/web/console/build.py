"""The HTTP side for admins, wired: routes of their own on a listener of their own."""

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
from ..route import Route, routes_of
from ..wire.site import Site
from .acts import Acts
from .app import AdminsApp
from .dear import DearQuestions
from .inspections import Inspections
from .openapi import ConsoleOpenApi
from .overview import Overviews
from .pages import page_routes
from .players import PlayerViews
from .replays import ReplayViews
from .signing_in import SigningIn


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

    dear = DearQuestions()
    resources = (
        SigningIn(database=database, reactor=reactor),
        PlayerViews(database=database, reactor=reactor, dear=dear),
        ReplayViews(database=database, timelines=timelines),
        Overviews(database=database, reactor=reactor, now=now),
        Inspections(settings=settings, database=database, reactor=reactor, dear=dear),
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
