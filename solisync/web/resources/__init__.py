"""The resources, wired: one object for each, whose methods are the handlers of routes."""

from collections.abc import Callable
from datetime import datetime
from itertools import chain

from twisted.internet.base import ReactorBase

from ...access.large_bodies import LargeBodies
from ...access.passwords import Passwords
from ...access.rate_limit import RateLimiter, StreamRateLimit
from ...access.tokens import Tokens
from ...checking.timelines import Timelines
from ...events.live import Live
from ...postgres.database import Database
from ...process.metrics import Metrics
from ...rules.replay_lists import Recent
from ...rules.shapes import Features
from ...settings.settings import ServingSettings
from ..handler_limits import OneAtATime
from ..route import Route, routes_of
from ..shared_cache import CoalescingCache
from .accounts import Accounts
from .analytics import Analytics
from .avatars import Avatars
from .boards import Boards, Challenge
from .browser_sessions import BrowserSessions
from .export import Export
from .guests import Guests
from .health import Health
from .html_pages import Pages
from .leaderboard import Leaderboard, load_board
from .live_events import LiveEvents
from .new_passwords import NewPasswords
from .openapi import OpenApi
from .replays import Replays
from .sessions import Sessions
from .swagger_ui import Docs
from .sync import Sync
from .verdicts import Verdicts

MIB = 2**20


class Resources:
    """Builds the resources. `recent` is the list of recent replays, and `schema` the number of the newest migration."""

    def __init__(
        self,
        settings: ServingSettings,
        reactor: ReactorBase,
        *,
        database: Database,
        recent: CoalescingCache[list[Recent]],
        passwords: Passwords,
        tokens: Tokens,
        limiter: RateLimiter,
        large_bodies: LargeBodies,
        metrics: Metrics,
        live: Live,
        timelines: Timelines,
        schema: int,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        board = CoalescingCache(lambda: load_board(database), reactor=reactor)
        quota = settings.replay_quota_mib * MIB or None
        self.accounts = Accounts(
            database=database,
            passwords=passwords,
            tokens=tokens,
            board=board,
            recent=recent,
            bus=live.bus,
            now=now,
            new_id=new_id,
        )
        self.sessions = Sessions(
            database=database,
            passwords=passwords,
            tokens=tokens,
            limiter=limiter,
            limit=settings.auth_limit,
            metrics=metrics,
            bus=live.bus,
            now=now,
        )
        self.new_passwords = NewPasswords(
            database=database, passwords=passwords, tokens=tokens, metrics=metrics, bus=live.bus, now=now
        )
        self.browser_sessions = BrowserSessions(
            database=database,
            tokens=tokens,
            accounts=self.accounts,
            sessions=self.sessions,
            new_passwords=self.new_passwords,
            now=now,
        )
        self.guests = Guests(
            database=database,
            passwords=passwords,
            tokens=tokens,
            limiter=limiter,
            auth_limit=settings.auth_limit,
            limit=settings.guest_limit,
            large_bodies=large_bodies,
            board=board,
            bus=live.bus,
            now=now,
            new_id=new_id,
        )
        self.export = Export(database=database)
        self.avatars = Avatars(database=database, public=settings.public_avatars)
        self.sync = Sync(
            database=database, board=board, large_bodies=large_bodies, metrics=metrics, bus=live.bus, now=now
        )
        self.leaderboard = Leaderboard(database=database, board=board, bus=live.bus, now=now)
        self.challenge = Challenge(now=now)
        self.replays = Replays(
            database=database, board=board, recent=recent, bus=live.bus, quota_bytes=quota, now=now, new_id=new_id
        )
        self.verdicts = Verdicts(
            database=database,
            timelines=timelines,
            turns=OneAtATime(reactor=reactor, on_refusal=lambda: metrics.refusals.labels(Timelines.name).inc()),
        )
        self.boards = Boards(database=database)
        self.analytics = Analytics(database=database, metrics=metrics, now=now)
        self.health = Health(
            features=Features(pages=settings.pages, public_avatars=settings.public_avatars),
            database=database,
            schema_number=schema,
            reactor=reactor,
        )
        rate_limit = StreamRateLimit(
            reactor=reactor, on_refusal=lambda: metrics.refusals.labels(StreamRateLimit.name).inc()
        )
        self.live_events = LiveEvents(database=database, live_streams=live.streams, rate_limit=rate_limit)
        self.docs = Docs()
        self.pages = Pages(
            database=database,
            now=now,
            site_name=settings.site_name,
            site_links=settings.site_links,
            public_avatars=settings.public_avatars,
        )

    def routes(self, settings: ServingSettings) -> tuple[Route, ...]:
        """Every route of the players' listener: the source of dispatch, authorisation, limits and the OpenAPI document.

        Without streams or pages, their routes are unknown paths.
        """
        served: list[object] = [
            self.accounts,
            self.sessions,
            self.guests,
            self.export,
            self.avatars,
            self.new_passwords,
            *([self.live_events] if settings.streams else []),
            self.sync,
            self.leaderboard,
            self.challenge,
            self.replays,
            self.verdicts,
            self.boards,
            self.analytics,
            self.health,
            OpenApi(lambda: table),
            self.docs,
            *([self.pages, self.browser_sessions] if settings.pages else []),
        ]
        static = self.pages.static_routes() if settings.pages else ()
        table = (*chain.from_iterable(routes_of(resource, settings) for resource in served), *static)
        return table
