"""The route table, the source of dispatch, authorisation, rate limits, bodies and the OpenAPI document."""

from ...access.rate_limit import Limit
from ..accounts import Accounts
from ..analytics import Analytics
from ..avatars import Avatars
from ..boards import Boards
from ..browser_sessions import BrowserSessions
from ..challenge import Challenge
from ..export import Export
from ..health import Health
from ..leaderboard import Leaderboard
from ..openapi import OpenApi
from ..pages import Pages
from ..replays import Replays
from ..route import Route
from ..sessions import Sessions
from ..swagger_ui import Docs
from ..sync import Sync
from ..verdicts import Verdicts
from .browsing import browsing
from .games import games
from .players import players
from .service import service
from .watching import watching


def routes(
    auth_limit: Limit,
    public_avatars: bool = False,
    with_pages: bool = True,
    *,
    accounts: Accounts,
    sessions: Sessions,
    export: Export,
    avatars: Avatars,
    sync: Sync,
    leaderboard: Leaderboard,
    challenge: Challenge,
    replays: Replays,
    verdicts: Verdicts,
    boards: Boards,
    analytics: Analytics,
    health: Health,
    docs: Docs,
    pages: Pages,
    browser_sessions: BrowserSessions,
) -> tuple[Route, ...]:
    """Every route of the service; those that begin or continue a session share `auth_limit`.

    Avatars may be public, and there may be no pages.
    """
    table = (
        *players(auth_limit, public_avatars, accounts=accounts, sessions=sessions, export=export, avatars=avatars),
        *games(sync=sync, leaderboard=leaderboard, challenge=challenge),
        *watching(replays=replays, verdicts=verdicts, boards=boards),
        *service(analytics=analytics, health=health, openapi=OpenApi(lambda: table), docs=docs),
        *(browsing(auth_limit, pages=pages, browser_sessions=browser_sessions) if with_pages else ()),
    )
    return table
