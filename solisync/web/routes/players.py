"""The routes of players: their accounts, sessions and avatars."""

from ...access.rate_limit import Limit
from ...rules.accounts import AuthRequest, Me, RefreshRequest, TokenPair
from ...rules.avatars import AVATAR_TOO_LARGE, AVATAR_TYPES
from ...rules.shapes import Ok
from ..accounts import REGISTER_ERRORS, Accounts
from ..avatars import Avatars
from ..route import Json, Route, Upload, aliased
from ..sessions import Sessions
from ..wire.reply import Refusal


def players(auth_limit: Limit, *, accounts: Accounts, sessions: Sessions, avatars: Avatars) -> tuple[Route, ...]:
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
        *aliased(
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
            alias="/avatars/{user_id}",  # always "avatar not found"
            listed=False,
        ),
    )
