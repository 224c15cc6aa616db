"""The routes of players: their accounts, sessions and avatars."""

from ...access.rate_limit import EXPORT, PASSWORD, Limit
from ...rules.accounts import AuthRequest, Me, RefreshRequest, TokenPair
from ...rules.avatars import AVATAR_TOO_LARGE, AVATAR_TYPES
from ...rules.export import Exported
from ...rules.sessions import PasswordChange, Session
from ...rules.shapes import Ok
from ..accounts import REGISTER_ERRORS, Accounts
from ..avatars import Avatars
from ..export import Export
from ..route import Content, Json, Route, Upload, aliased
from ..sessions import Sessions
from ..wire.reply import Refusal


def players(
    auth_limit: Limit, public_avatars: bool, *, accounts: Accounts, sessions: Sessions, export: Export, avatars: Avatars
) -> tuple[Route, ...]:
    """Those that begin or continue a session share `auth_limit`."""
    return (
        Route(
            method="POST",
            path="/api/auth/register",
            name="register",
            tag="accounts",
            handler=accounts.register,
            summary="Create an account and begin its first session",
            limit=auth_limit,
            body=Json(AuthRequest),
            private=True,
            answer=TokenPair,
            errors=REGISTER_ERRORS,
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
            private=True,
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
            private=True,
            answer=TokenPair,
            errors=("unauthorized",),
        ),
        Route(
            method="POST",
            path="/api/auth/logout",
            name="logout",
            tag="sessions",
            handler=sessions.logout,
            summary="End the session of a refresh token",
            body=Json(RefreshRequest),
            private=True,
            answer=Ok,
            errors=("unauthorized",),
        ),
        Route(
            method="GET",
            path="/api/sessions",
            name="sessions",
            tag="sessions",
            handler=sessions.list,
            summary="List one's sessions, last used first",
            protected=True,
            answer=list[Session],
            errors=("user_not_found",),
        ),
        Route(
            method="DELETE",
            path="/api/sessions/{session_id}",
            name="end_session",
            tag="sessions",
            handler=sessions.end,
            summary="End one of one's sessions",
            protected=True,
            answer=Ok,
            errors=("session_not_found", "user_not_found"),
        ),
        Route(
            method="DELETE",
            path="/api/sessions",
            name="end_sessions",
            tag="sessions",
            handler=sessions.end_all,
            summary="End all of one's sessions, this one too",
            protected=True,
            answer=Ok,
            errors=("user_not_found",),
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
            method="PUT",
            path="/api/me/password",
            name="change_password",
            tag="accounts",
            handler=accounts.change_password,
            summary="Change one's password, and end all sessions but a new one",
            protected=True,
            limit=PASSWORD,
            body=Json(PasswordChange),
            answer=TokenPair,
            errors=("password_length", "password_too_long", "invalid_credentials", "user_not_found"),
        ),
        Route(
            method="GET",
            path="/api/me/export",
            name="export",
            tag="accounts",
            handler=export.export,
            summary="Get all that is stored about oneself",
            protected=True,
            limit=EXPORT,
            answer=Exported,
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
            method="DELETE",
            path="/api/me/avatar",
            name="delete_avatar",
            tag="avatars",
            handler=avatars.delete,
            summary="Take one's avatar away",
            protected=True,
            answer=Ok,
            errors=("user_not_found",),
        ),
        *aliased(
            Route(
                method="GET",
                path="/avatars/{user_id}.{extension}",
                name="avatar",
                tag="avatars",
                handler=avatars.show,
                summary="Show a player's avatar",
                protected=not public_avatars,
                answer=Content(AVATAR_TYPES),
                errors=("avatar_not_found",),
            ),
            alias="/avatars/{user_id}",  # always "avatar not found"
            listed=False,
        ),
    )
