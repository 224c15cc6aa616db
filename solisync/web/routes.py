"""The route table, the source of dispatch, authorisation, rate limits, bodies and the OpenAPI document."""

from ..access.rate_limit import ANALYTICS, Limit
from ..rules.accounts import AuthRequest, Me, RefreshRequest, TokenPair
from ..rules.analytics import Batch, Receipt, read_batch
from ..rules.avatars import AVATAR_TOO_LARGE, AVATAR_TYPES
from ..rules.challenge import DailyChallenge
from ..rules.health import Alive, Ready
from ..rules.leaderboard import Entry, OptIn
from ..rules.replays import Count, Recent, Replay, Uploaded, read_replay
from ..rules.shapes import Ok
from ..rules.sync import Payload, SyncAnswer, read_pushed
from .accounts import Accounts
from .analytics import Analytics
from .avatars import Avatars
from .challenge import Challenge
from .health import Health
from .leaderboard import Leaderboard
from .openapi import OpenApi
from .replays import Replays
from .route import Json, Route, Upload, aliased
from .sessions import Sessions
from .swagger_ui import Docs
from .sync import Sync
from .wire.reply import Refusal


def routes(
    auth_limit: Limit,
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
    """Every route of the service; those that begin or continue a session share `auth_limit`."""
    openapi = OpenApi(lambda: table)
    table = (
        Route(
            method="POST",
            path="/api/auth/register",
            name="register",
            tag="accounts",
            handler=accounts.register,
            summary="Create an account and begin its first session",
            limit=auth_limit,
            body=Json(AuthRequest),
            answer=TokenPair,
            errors=(
                "username_length",
                "username_characters",
                "password_length",
                "password_too_long",
                "username_taken",
            ),
        ),
        Route(
            method="POST",
            path="/api/auth/login",
            name="login",
            tag="sessions",
            handler=sessions.login,
            summary="Begin a session",
            limit=auth_limit,
            body=Json(AuthRequest),
            answer=TokenPair,
            errors=("invalid_credentials", "username_characters"),
        ),
        Route(
            method="POST",
            path="/api/auth/refresh",
            name="refresh",
            tag="sessions",
            handler=sessions.refresh,
            summary="Spend a refresh token for a new pair of tokens",
            limit=auth_limit,
            body=Json(RefreshRequest),
            answer=TokenPair,
            errors=("unauthorized",),
        ),
        Route(
            method="GET",
            path="/api/me",
            name="me",
            tag="accounts",
            handler=accounts.me,
            summary="Show one's own profile",
            protected=True,
            answer=Me,
            errors=("user_not_found",),
        ),
        Route(
            method="DELETE",
            path="/api/account",
            name="delete_account",
            tag="accounts",
            handler=accounts.delete,
            summary="Delete one's account and all that belongs to it",
            protected=True,
            answer=Ok,
        ),
        Route(
            method="PUT",
            path="/api/me/avatar",
            name="upload_avatar",
            tag="avatars",
            handler=avatars.upload,
            summary="Set one's avatar",
            protected=True,
            body=Upload(AVATAR_TYPES, too_large=Refusal("avatar_too_large", AVATAR_TOO_LARGE)),
            answer=Me,
            errors=("avatar_type", "avatar_signature", "user_not_found"),
            links={"avatar": {"user_id": "$response.body#/id"}},
        ),
        Route(
            method="GET",
            path="/avatars/{user_id}.{extension}",
            name="avatar",
            tag="avatars",
            handler=avatars.show,
            summary="Show a player's avatar",
            protected=True,
            conditional=True,
            answer_content=AVATAR_TYPES,
            errors=("avatar_not_found",),
        ),
        Route(
            method="GET",
            path="/api/sync/pull",
            name="pull",
            tag="sync",
            handler=sync.pull,
            summary="Show one's stored progress",
            protected=True,
            answer=SyncAnswer,
            errors=("user_not_found",),
        ),
        Route(
            method="POST",
            path="/api/sync/push",
            name="push",
            tag="sync",
            handler=sync.push,
            summary="Merge a device's progress into the stored one",
            protected=True,
            body=Json(Payload, read_pushed),
            answer=SyncAnswer,
            errors=("user_id_mismatch", "sync_too_large", "sync_too_many", "user_not_found"),
        ),
        Route(
            method="GET",
            path="/api/leaderboard",
            name="leaderboard",
            tag="leaderboard",
            handler=leaderboard.show,
            summary="List the best players who want to be seen",
            protected=True,
            answer=list[Entry],
        ),
        Route(
            method="POST",
            path="/api/leaderboard/opt-in",
            name="opt_in",
            tag="leaderboard",
            handler=leaderboard.opt_in,
            summary="Appear on the leaderboard, or change one's name there",
            protected=True,
            body=Json(OptIn),
            answer=Ok,
            errors=("display_name_empty", "display_name_length", "display_name_characters", "user_not_found"),
        ),
        Route(
            method="DELETE",
            path="/api/leaderboard/opt-in",
            name="opt_out",
            tag="leaderboard",
            handler=leaderboard.opt_out,
            summary="Disappear from the leaderboard",
            protected=True,
            answer=Ok,
            errors=("user_not_found",),
        ),
        Route(
            method="POST",
            path="/api/replays",
            name="upload_replay",
            tag="replays",
            handler=replays.upload,
            summary="Store a replay, to the byte",
            protected=True,
            body=Json(Replay, read_replay),
            answer=Uploaded,
            errors=("replay_storage_full", "user_not_found"),
            links={"replay": {"replay_id": "$response.body#/id"}},
        ),
        Route(
            method="GET",
            path="/api/replays/recent",
            name="recent_replays",
            tag="replays",
            handler=replays.list_recent,
            summary="List the newest replays of everybody",
            query={"limit": Count},
            answer=list[Recent],
        ),
        Route(
            method="GET",
            path="/api/replays/{replay_id}",
            name="replay",
            tag="replays",
            handler=replays.fetch,
            summary="Get a replay as it was uploaded",
            conditional=True,
            answer=Replay,
            errors=("replay_not_found",),
        ),
        Route(
            method="GET",
            path="/api/daily-challenge",
            name="daily_challenge",
            tag="challenge",
            handler=challenge.daily,
            summary="Show the deal of the day and its goal",
            answer=DailyChallenge,
        ),
        Route(
            method="POST",
            path="/api/analytics",
            name="report",
            tag="analytics",
            handler=analytics.receive,
            summary="Report what happened in a game",
            limit=ANALYTICS,
            body=Json(Batch, read_batch),
            answer=Receipt,
            errors=("batch_too_large",),
        ),
        *aliased(
            Route(
                method="GET",
                path="/api/health",
                name="live",
                tag="health",
                handler=health.live,
                summary="Whether the process is alive",
                answer=Alive,
            ),
            alias="/health",
        ),
        *aliased(
            Route(
                method="GET",
                path="/api/health/ready",
                name="ready",
                tag="health",
                handler=health.ready,
                summary="Whether the service can do its work",
                answer=Ready,
            ),
            alias="/health/ready",
        ),
        Route(
            method="GET",
            path="/api/openapi.json",
            name="openapi",
            tag="docs",
            handler=openapi.document,
            summary="This interface as an OpenAPI 3.1 document",
        ),
        Route(
            method="GET",
            path="/api/docs",
            name="docs",
            tag="docs",
            handler=docs.page,
            summary="This interface as a page for people",
            conditional=True,
            answer_content=("text/html",),
        ),
        Route(
            method="GET",
            path="/api/docs/{name}",
            name="docs_asset",
            tag="docs",
            handler=docs.asset,
            summary="A part of that page",
            conditional=True,
            listed=False,
        ),
    )
    return table
