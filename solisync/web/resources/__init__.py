"""The resources: one object each, whose methods are the handlers of its routes."""

from collections.abc import Callable, Iterable
from itertools import chain

from ...access.rate_limit import StreamRateLimit
from ...checking.timelines import Timelines
from ...rules.shapes import Features
from ..handler_limits import OneAtATime
from ..parts import Parts
from ..route import Route, routes_of
from .accounts import Accounts
from .analytics import Analytics
from .avatars import Avatars
from .boards import Boards, Challenge
from .browser_sessions import BrowserSessions
from .export import Export
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
    make, settings = parts.make, parts.settings

    def refused(name: str) -> Callable[[], None]:
        return lambda: parts.metrics.refusals.labels(name).inc()

    quota_bytes = settings.replay_quota_mib * MIB or None
    opened = make(StreamRateLimit, on_refusal=refused(StreamRateLimit.name))
    accounts, new_passwords = make(Accounts), make(NewPasswords)
    sessions, sync = make(Sessions, limit=settings.auth_limit), make(Sync)
    served: list[object] = [
        accounts,
        sessions,
        make(Guests, auth_limit=settings.auth_limit, limit=settings.guest_limit),
        make(Joins, sync=sync, quota_bytes=quota_bytes),
        make(Export),
        make(Avatars, public=settings.public_avatars),
        new_passwords,
        *([make(LiveEvents, rate_limit=opened)] if settings.streams else []),
        sync,
        make(Leaderboard),
        make(Challenge),
        make(Replays, quota_bytes=quota_bytes),
        make(Verdicts, turns=make(OneAtATime, on_refusal=refused(Timelines.name))),
        make(Boards),
        make(Analytics),
        make(Health, features=Features(pages=settings.pages, public_avatars=settings.public_avatars)),
        OpenApi(lambda: table),
        Docs(),
    ]
    static: Iterable[Route] = ()
    if pages is not None:
        served += [
            pages,
            make(PageFiles, build=pages.build, kept_pages=pages.kept),
            make(BrowserSessions, accounts=accounts, sessions=sessions, new_passwords=new_passwords),
        ]
        static = pages.static_routes()
    table = (*chain.from_iterable(routes_of(resource, settings) for resource in served), *static)
    return table
