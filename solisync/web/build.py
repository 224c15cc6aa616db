"""The HTTP side of a process, wired: the resources, their routes, and the site that serves them."""

from collections.abc import Callable
from datetime import datetime

from twisted.internet.base import ReactorBase

from ..access.large_bodies import LargeBodies
from ..access.passwords import Passwords
from ..access.rate_limit import RateLimiter
from ..access.tokens import Tokens
from ..checking.timelines import Timelines
from ..events.live import Live
from ..postgres.database import Database
from ..process.audit import Happened
from ..process.metrics import Metrics
from ..rules.replay_lists import Recent
from ..settings.settings import ServingSettings
from .error_replies import as_json, as_page
from .players_app import PlayersApp, Restrictions
from .resources import Resources
from .shared_cache import CoalescingCache
from .wire.site import Site


def make_site(
    settings: ServingSettings,
    reactor: ReactorBase,
    *,
    database: Database,
    recent: CoalescingCache[list[Recent]],
    passwords: Passwords,
    metrics: Metrics,
    live: Live,
    timelines: Timelines,
    observer: Callable[[Happened], None],
    schema: int,
    now: Callable[[], datetime],
    new_id: Callable[[], str],
    handler_seconds: float,
) -> Site:
    """Build the site, which listens nowhere yet.

    `recent` is the list of recent replays, and `schema` the number of the newest migration. `observer` is called with
    each event of an account.
    """
    tokens = Tokens(settings.jwt_secret, previous=settings.jwt_secret_previous, new_id=new_id)
    limiter = RateLimiter(
        database=database, reactor=reactor, on_refusal=lambda name: metrics.refusals.labels(name).inc()
    )
    large_bodies = LargeBodies(
        seconds=reactor.seconds, on_refusal=lambda: metrics.refusals.labels(LargeBodies.name).inc()
    )
    restrictions = Restrictions(database=database, reactor=reactor, on_change=metrics.suspended.set)
    resources = Resources(
        settings,
        reactor,
        database=database,
        recent=recent,
        passwords=passwords,
        tokens=tokens,
        limiter=limiter,
        large_bodies=large_bodies,
        metrics=metrics,
        live=live,
        timelines=timelines,
        schema=schema,
        now=now,
        new_id=new_id,
    )
    app = PlayersApp(
        resources.routes(settings),
        reactor=reactor,
        limiter=limiter,
        large_bodies=large_bodies,
        tokens=tokens,
        restrictions=restrictions,
        metrics=metrics,
        observer=observer,
        now=now,
        handler_seconds=handler_seconds,
        present_error=as_page(resources.pages) if settings.pages else as_json,
    )
    return Site(
        app,
        reactor,
        trusted_proxies=settings.trusted_proxies,
        cors_origins=settings.cors_origins,
        metrics=metrics,
        admit=app.admit,
    )
