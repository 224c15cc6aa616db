"""The HTTP side of a process, wired: the nouns, the route table over them, and the site that serves it."""

from collections.abc import Callable
from datetime import datetime

from twisted.internet.base import ReactorBase

from ..access.large_bodies import LargeBodies
from ..access.passwords import Passwords
from ..access.rate_limit import RateLimiter
from ..access.tokens import Tokens
from ..postgres.database import Database
from ..process.metrics import Metrics
from ..rules.health import Features
from ..rules.replay_lists import Recent
from ..settings import ServingSettings
from .accounts import Accounts
from .analytics import Analytics
from .app import App
from .avatars import Avatars
from .boards import Boards
from .browser_sessions import BrowserSessions
from .challenge import Challenge
from .export import Export
from .health import Health
from .leaderboard import Leaderboard, load_board
from .pages import Pages
from .replays import Replays
from .routes import routes
from .sessions import Sessions
from .shared_cache import CoalescingCache
from .swagger_ui import Docs
from .sync import Sync
from .verdicts import Verdicts
from .wire.site import Site

MIB = 2**20


def make_site(
    settings: ServingSettings,
    reactor: ReactorBase,
    *,
    database: Database,
    recent: CoalescingCache[list[Recent]],
    passwords: Passwords,
    metrics: Metrics,
    schema: int,
    now: Callable[[], datetime],
    new_id: Callable[[], str],
) -> Site:
    """Build the site, which listens nowhere yet.

    `recent` is the list of recent replays, and `schema` the number of the newest migration.
    """
    tokens = Tokens(settings.jwt_secret, previous=settings.jwt_secret_previous, new_id=new_id)
    board = CoalescingCache(lambda: load_board(database), reactor=reactor)
    quota = settings.replay_quota_mib * MIB or None
    large_bodies = LargeBodies(
        seconds=reactor.seconds, on_refusal=lambda: metrics.refusals.labels(LargeBodies.name).inc()
    )
    limiter = RateLimiter(
        database=database, reactor=reactor, on_refusal=lambda name: metrics.refusals.labels(name).inc()
    )
    accounts = Accounts(
        database=database, passwords=passwords, tokens=tokens, board=board, recent=recent, now=now, new_id=new_id
    )
    sessions = Sessions(
        database=database,
        passwords=passwords,
        tokens=tokens,
        limiter=limiter,
        limit=settings.auth_limit,
        metrics=metrics,
        now=now,
    )
    table = routes(
        settings.auth_limit,
        settings.public_avatars,
        settings.pages,
        accounts=accounts,
        sessions=sessions,
        export=Export(database=database),
        avatars=Avatars(database=database, public=settings.public_avatars),
        sync=Sync(database=database, board=board, large_bodies=large_bodies, metrics=metrics, now=now),
        leaderboard=Leaderboard(database=database, board=board, now=now),
        challenge=Challenge(now=now),
        replays=Replays(database=database, board=board, recent=recent, quota_bytes=quota, now=now, new_id=new_id),
        verdicts=Verdicts(database=database),
        boards=Boards(database=database),
        analytics=Analytics(database=database, metrics=metrics, now=now),
        health=Health(
            features=Features(pages=settings.pages, public_avatars=settings.public_avatars),
            database=database,
            schema_number=schema,
            reactor=reactor,
        ),
        docs=Docs(),
        pages=Pages(database=database),
        browser_sessions=BrowserSessions(
            database=database,
            tokens=tokens,
            now=now,
            register=accounts.register,
            login=sessions.login,
            refresh=sessions.refresh,
            change_password=accounts.change_password,
            logout=sessions.logout,
        ),
    )
    app = App(
        table,
        reactor=reactor,
        limiter=limiter,
        large_bodies=large_bodies,
        tokens=tokens,
        metrics=metrics,
        now=now,
    )
    return Site(
        app.resource(),
        reactor,
        trusted_proxies=settings.trusted_proxies,
        cors_origins=settings.cors_origins,
        metrics=metrics,
        admit=app.admit,
    )
