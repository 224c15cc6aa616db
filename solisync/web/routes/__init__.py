"""The route table, the source of dispatch, authorisation, rate limits, bodies and the OpenAPI document."""

from ...access.rate_limit import Limit
from ..accounts import Accounts
from ..analytics import Analytics
from ..avatars import Avatars
from ..challenge import Challenge
from ..health import Health
from ..leaderboard import Leaderboard
from ..openapi import OpenApi
from ..replays import Replays
from ..route import Route
from ..sessions import Sessions
from ..swagger_ui import Docs
from ..sync import Sync
from .games import games
from .players import players
from .service import service


def routes(
    auth_limit: Limit,
    public_avatars: bool = False,
    *,
    accounts: Accounts,
    sessions: Sessions,
    avatars: Avatars,
    sync: Sync,
    leaderboard: Leaderboard,
    challenge: Challenge,
    replays: Replays,
    analytics: Analytics,
    health: Health,
    docs: Docs,
) -> tuple[Route, ...]:
    """Every route of the service; those that begin or continue a session share `auth_limit`. Avatars may be public."""
    table = (
        *players(auth_limit, public_avatars, accounts=accounts, sessions=sessions, avatars=avatars),
        *games(sync=sync, leaderboard=leaderboard, challenge=challenge, replays=replays),
        *service(analytics=analytics, health=health, openapi=OpenApi(lambda: table), docs=docs),
    )
    return table
