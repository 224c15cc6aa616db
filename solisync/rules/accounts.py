"""Accounts: message shapes, and the rules for usernames and passwords (docs/protocol.md "Sessions", "The player")."""

import re
from typing import Annotated, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from ..errors import BadRequest, Unauthorized
from .sessions import REFRESH_LIFETIME
from .shapes import Id

USERNAME_LENGTH = range(3, 33)
PASSWORD_MIN_BYTES = 8
PASSWORD_MAX_BYTES = 1024

_RETRY_KEY = re.compile("^[A-Za-z0-9_-]{16,64}$")
_USERNAME = re.compile(r"[A-Za-z0-9_]*")


Username = Annotated[
    str,
    Meta(
        description="3-32 ASCII letters, digits and underscores, after trimming",
        examples=["ann"],
        # for the OpenAPI document alone: `check_username` checks it, with error texts for players
        extra_json_schema={"pattern": r"^\s*[A-Za-z0-9_]{3,32}\s*$"},
    ),
]
Password = Annotated[str, Meta(description="8 to 1024 bytes of UTF-8", examples=["correct horse"])]


class Repeatable(Struct, frozen=True, kw_only=True):
    """A request that may be repeated with the same key if its answer is lost."""

    retry_key: Annotated[
        str | None,
        Meta(
            description="16-64 letters, digits, _ and -, made at random for one request and its repetitions",
            extra_json_schema={"pattern": _RETRY_KEY.pattern},
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.retry_key is not None and not _RETRY_KEY.fullmatch(self.retry_key):
            raise ValueError("`retry_key` must be 16-64 letters, digits, _ and -")


class AuthRequest(Repeatable, frozen=True):
    """A player's credentials. The username is trimmed, and the password is not."""

    username: Username
    password: Password


class RefreshRequest(Repeatable, frozen=True):
    """The refresh token to spend."""

    refresh_token: str


class LogoutRequest(Struct, frozen=True):
    """The refresh token of the session to end."""

    refresh_token: str


class Identity(Struct, frozen=True):
    """Whose session it is."""

    id: Id
    username: str
    guest: bool


PlayerOfKey = Annotated[Identity | UnsetType, Meta(description="only in the answer to a request with a key")]


class TokenPair(Struct, frozen=True):
    """The tokens of a session: replace both whenever a new pair arrives."""

    access_token: Annotated[str, Meta(description="JWT, valid for 24 hours")]
    refresh_token: Annotated[str, Meta(description=f"JWT, valid for {REFRESH_LIFETIME.days} days, accepted once")]
    player: PlayerOfKey = UNSET


class IssuedPair(NamedTuple):
    """The tokens of a session; `repeated`: an equal request has begun it before."""

    pair: TokenPair
    repeated: bool


class Me(Struct, frozen=True):
    """A player's own profile."""

    id: Id
    username: str
    avatar_url: Annotated[str | None, Meta(description="/avatars/<id>.<ext>, null until an avatar is uploaded")]
    guest: Annotated[bool | UnsetType, Meta(description="true for a guest, absent for a player")] = UNSET


def check_username(text: str) -> str:
    """Trim and check the username of a new player; raises BadRequest."""
    username = text.strip()
    if len(username) not in USERNAME_LENGTH:
        raise BadRequest("username_length", "username must be 3-32 characters")
    if not _USERNAME.fullmatch(username):
        raise BadRequest("username_characters", "username may only contain letters, digits and underscores")
    return username


def username_to_look_up(text: str) -> str | None:
    """Trim the username of an existing player; None if no player can have it. Raises BadRequest for U+0000."""
    if "\0" in text:
        raise BadRequest("username_characters", "username must not contain U+0000")
    try:
        return check_username(text)
    except BadRequest:
        return None


def check_new_password(text: str) -> bytes:
    """Check a new password and return its bytes; raises BadRequest."""
    password = text.encode()
    if len(password) < PASSWORD_MIN_BYTES:
        raise BadRequest("password_length", "password must be at least 8 characters")
    if len(password) > PASSWORD_MAX_BYTES:
        raise BadRequest("password_too_long", "password must be at most 1024 bytes")
    return password


def avatar_url(user_id: str, extension: str | None) -> str | None:
    """The path of a player's avatar; None without one."""
    return None if extension is None else f"/avatars/{user_id}.{extension}"


def me(user_id: str, username: str | None, avatar_extension: str | None, guest: bool | None = None) -> Me:
    """The profile of a player.

    Raises Unauthorized for a row without a username. The schema doesn't allow that, but altered databases have had it.
    """
    if username is None:
        raise Unauthorized
    return Me(user_id, username, avatar_url(user_id, avatar_extension), guest or UNSET)
