"""The HTTP side for admins, wired: routes of their own on a listener of their own."""

from collections.abc import Callable
from datetime import datetime

from twisted.internet.base import ReactorBase

from ...access.large_bodies import LargeBodies
from ...access.passwords import Passwords
from ...access.rate_limit import RateLimiter
from ...checking.timelines import Timelines
from ...events.live import Live
from ...postgres.database import Database
from ...process.metrics import Metrics
from ...settings.settings import ServingSettings
from ..wire.site import Site
from .acts import Acts
from .app import AdminsApp
from .dear import DearQuestions
from .inspections import Inspections
from .overview import Overviews
from .players import PlayerViews
from .replays import ReplayViews
from .routes import routes
from .signing_in import SigningIn


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
    app = AdminsApp(
        routes(
            signing_in=SigningIn(database=database, reactor=reactor),
            acts=Acts(database=database, publish=live.bus.publish, passwords=passwords, reactor=reactor, now=now),
            players=PlayerViews(database=database, reactor=reactor, dear=dear),
            replays=ReplayViews(database=database, timelines=timelines),
            overviews=Overviews(database=database, reactor=reactor, now=now),
            inspections=Inspections(settings=settings, database=database, reactor=reactor, dear=dear),
        ),
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
