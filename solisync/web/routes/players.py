"""The routes of players: their accounts, sessions and avatars."""

from ...access.rate_limit import EXPORT, Limit
from ...rules.accounts import AuthRequest, Me, RefreshRequest, TokenPair
from ...rules.avatars import AVATAR_TOO_LARGE, AVATAR_TYPES
from ...rules.export import Exported
from ...rules.sessions import Session
from ...rules.shapes import Ok
from ..resources import Resources
from ..resources.accounts import REGISTER_ERRORS
from ..route import Content, Json, Route, Upload, aliased, delete, get, post, put
from ..wire.refusal import Refusal


def players(resources: Resources, auth_limit: Limit, *, public_avatars: bool) -> tuple[Route, ...]:
    """Those that begin or continue a session share `auth_limit`."""
    return (
        post(
            "/api/auth/register",
            resources.accounts.register,
            name="register",
            tag="accounts",
            summary="Create an account and begin its first session",
            limit=auth_limit,
            body=Json(AuthRequest),
            private=True,
            answer=TokenPair,
            errors=REGISTER_ERRORS,
        ),
        post(
            "/api/auth/login",
            resources.sessions.login,
            name="login",
            tag="sessions",
            summary="Begin a session",
            limit=auth_limit,
            body=Json(AuthRequest),
            private=True,
            answer=TokenPair,
            errors=("invalid_credentials", "username_characters", "suspended"),
        ),
        post(
            "/api/auth/refresh",
            resources.sessions.refresh,
            name="refresh",
            tag="sessions",
            summary="Spend a refresh token for a new pair of tokens",
            limit=auth_limit,
            body=Json(RefreshRequest),
            private=True,
            answer=TokenPair,
            errors=("unauthorized",),
        ),
        post(
            "/api/auth/logout",
            resources.sessions.logout,
            name="logout",
            tag="sessions",
            summary="End the session of a refresh token",
            body=Json(RefreshRequest),
            private=True,
            answer=Ok,
            errors=("unauthorized",),
        ),
        get(
            "/api/sessions",
            resources.sessions.list,
            name="sessions",
            tag="sessions",
            summary="List one's sessions, last used first",
            protected=True,
            answer=list[Session],
            errors=("user_not_found",),
        ),
        delete(
            "/api/sessions/{session_id}",
            resources.sessions.end,
            name="end_session",
            tag="sessions",
            summary="End one of one's sessions",
            protected=True,
            answer=Ok,
            errors=("session_not_found", "user_not_found"),
        ),
        delete(
            "/api/sessions",
            resources.sessions.end_all,
            name="end_sessions",
            tag="sessions",
            summary="End all of one's sessions, this one too",
            protected=True,
            answer=Ok,
            errors=("user_not_found",),
        ),
        get(
            "/api/me",
            resources.accounts.me,
            name="me",
            tag="accounts",
            summary="Show one's own profile",
            protected=True,
            answer=Me,
            errors=("user_not_found",),
        ),
        get(
            "/api/me/export",
            resources.export.export,
            name="export",
            tag="accounts",
            summary="Get all that is stored about oneself",
            protected=True,
            limit=EXPORT,
            answer=Exported,
            errors=("user_not_found",),
        ),
        delete(
            "/api/account",
            resources.accounts.delete,
            name="delete_account",
            tag="accounts",
            summary="Delete one's account and all that belongs to it",
            protected=True,
            answer=Ok,
        ),
        put(
            "/api/me/avatar",
            resources.avatars.upload,
            name="upload_avatar",
            tag="avatars",
            summary="Set one's avatar",
            protected=True,
            body=Upload(AVATAR_TYPES, too_large=Refusal("avatar_too_large", AVATAR_TOO_LARGE)),
            answer=Me,
            errors=("avatar_type", "avatar_signature", "locked", "user_not_found"),
            links={"avatar": {"user_id": "$response.body#/id"}},
        ),
        delete(
            "/api/me/avatar",
            resources.avatars.delete,
            name="delete_avatar",
            tag="avatars",
            summary="Take one's avatar away",
            protected=True,
            answer=Ok,
            errors=("user_not_found",),
        ),
        *aliased(
            get(
                "/avatars/{user_id}.{extension}",
                resources.avatars.show,
                name="avatar",
                tag="avatars",
                summary="Show a player's avatar",
                protected=not public_avatars,
                answer=Content(AVATAR_TYPES),
                errors=("avatar_not_found",),
            ),
            alias="/avatars/{user_id}",  # always "avatar not found"
            listed=False,
        ),
    )
