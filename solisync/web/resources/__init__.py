"""The resources: one object each, whose methods are the handlers of its routes."""

from collections.abc import Iterable
from functools import partial
from itertools import chain

from ...access.rate_limit import STREAMS, LocalRateLimit
from ...checking.timelines import Timelines
from ...rules.shapes import Features
from ..handler_limits import OneAtATime
from ..process_parts import Parts
from ..route import Route, Tagged, routes_of
from .accounts import Accounts
from .analytics import Analytics
from .avatars import Avatars
from .boards import Boards, Challenge
from .browser_sessions import BrowserSessions
from .export import Export
from .games import FinishedGames
from .guests import Guests
from .health import Health
from .html_pages import Pages
from .joins import Joins
from .leaderboard import Leaderboard
from .live_events import LiveEvents
from .new_passwords import NewPasswords
from .openapi import OpenApi
from .page_files import PageFiles
from .replays import Replays
from .sessions import Sessions
from .swagger_ui import Docs
from .sync import Sync
from .verdicts import Verdicts

MIB = 2**20


def player_routes(parts: Parts, pages: Pages | None) -> tuple[Route, ...]:
    """All routes of the players' listener: the source of dispatch, authorisation, limits and the OpenAPI document.

    Without streams or pages, their routes don't exist.
    """
    settings, database, reactor, metrics, bus = parts.settings, parts.database, parts.reactor, parts.metrics, parts.bus
    tokens, passwords, limiter, large_bodies = parts.tokens, parts.passwords, parts.limiter, parts.large_bodies
    board, recent, now, new_id = parts.board, parts.recent, parts.now, parts.new_id
    quota_bytes = settings.replay_quota_mib * MIB or None
    accounts = Accounts(
        database=database,
        passwords=passwords,
        tokens=tokens,
        board=board,
        recent=recent,
        bus=bus,
        now=now,
        new_id=new_id,
    )
    new_passwords = NewPasswords(
        database=database, passwords=passwords, tokens=tokens, metrics=metrics, bus=bus, now=now
    )
    sessions = Sessions(
        database=database,
        passwords=passwords,
        tokens=tokens,
        limiter=limiter,
        limit=settings.auth_limit,
        metrics=metrics,
        bus=bus,
        now=now,
    )
    guests = Guests(
        database=database,
        passwords=passwords,
        tokens=tokens,
        limiter=limiter,
        auth_limit=settings.auth_limit,
        limit=settings.guest_limit,
        recent=recent,
        bus=bus,
        now=now,
        new_id=new_id,
    )
    sync = Sync(database=database, board=board, large_bodies=large_bodies, metrics=metrics, bus=bus, now=now)
    games = FinishedGames(
        database=database, limiter=limiter, board=board, large_bodies=large_bodies, metrics=metrics, bus=bus, now=now
    )
    joins = Joins(
        database=database,
        tokens=tokens,
        sync=sync,
        large_bodies=large_bodies,
        quota_bytes=quota_bytes,
        board=board,
        bus=bus,
        now=now,
    )
    replays = Replays(
        database=database, board=board, recent=recent, bus=bus, quota_bytes=quota_bytes, now=now, new_id=new_id
    )
    opened = LocalRateLimit(STREAMS, reactor=reactor, on_refusal=metrics.refused)
    live_events = LiveEvents(database=database, live_streams=parts.live_streams, rate_limit=opened)
    timelines_of_address = OneAtATime(reactor=reactor, on_refusal=partial(metrics.refused, Timelines.name))
    features = Features(pages=settings.pages, public_avatars=settings.public_avatars)
    served: list[Tagged] = [
        accounts,
        sessions,
        guests,
        joins,
        Export(database=database),
        Avatars(database=database, public=settings.public_avatars),
        new_passwords,
        *([live_events] if settings.streams else []),
        sync,
        games,
        Leaderboard(database=database, board=board, bus=bus, now=now),
        Challenge(now=now),
        replays,
        Verdicts(database=database, timelines=parts.timelines, for_address=timelines_of_address),
        Boards(database=database),
        Analytics(database=database, metrics=metrics, now=now),
        Health(features=features, database=database, schema_number=parts.schema_number, reactor=reactor),
        OpenApi(lambda: table),
        Docs(),
    ]
    static: Iterable[Route] = ()
    if pages is not None:
        served += [
            pages,
            PageFiles(build=pages.build, kept_pages=pages.kept),
            BrowserSessions(database=database, accounts=accounts, sessions=sessions, new_passwords=new_passwords),
        ]
        static = pages.static_routes()
    table = (*chain.from_iterable(routes_of(resource, settings) for resource in served), *static)
    return table
