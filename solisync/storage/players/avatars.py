"""Avatars, at most one image a player: docs/protocol.md "The player".

Fast path: an image goes to the server as base64 instead of a bytea parameter, which takes the reactor three times as
long to write and PostgreSQL longer to read. Reading plain bytea back is as quick.
"""

from binascii import b2a_base64
from dataclasses import dataclass

from ...postgres.declared import maybe
from ...postgres.statement import Query
from ...postgres.transaction import Statements
from ..rows import converted
from .accounts import LOCK, SUSPENDED


@dataclass(frozen=True, slots=True)
class Avatar:
    """An image, and its strong ETag (RFC 9110 §8.8.3) with quotes."""

    image: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """The profile with the new avatar, unless it is `locked`; `changed` is False if the image was this one before."""

    locked: bool
    changed: bool
    username: str | None
    avatar_extension: str | None


# Runs after the lock, and so sees whether the profile has been locked.
REPLACE = Query(
    "replace_avatar",
    """
    WITH former AS (
        SELECT id, EXISTS (SELECT FROM profile_locks WHERE user_id = $1::uuid) AS locked,
            NOT EXISTS (
                SELECT FROM avatars
                WHERE user_id = $1::uuid AND avatar_extension = $2::text AND image = decode($3::text, 'base64')
            ) AS changed
        FROM users WHERE id = $1::uuid
    ), player AS (
        UPDATE users SET avatar_extension = $2::text FROM former WHERE users.id = former.id AND NOT locked AND changed
        RETURNING users.id
    ), image AS (
        INSERT INTO avatars (user_id, image) SELECT id, decode($3::text, 'base64') FROM player
        ON CONFLICT (user_id) DO UPDATE SET image = excluded.image
    )
    SELECT locked, changed, username, $2::text AS avatar_extension FROM former JOIN users USING (id)
    """,
    row=Replaced,
)

# Runs as a separate statement after the lock, so that its snapshot has an image that another upload has just committed.
# Returns a row for every player who exists, with or without an image.
REMOVE = Query(
    "remove_avatar",
    """
    WITH profile AS (
        UPDATE users SET avatar_extension = NULL WHERE id = $1::uuid AND avatar_extension IS NOT NULL
    ), image AS (
        DELETE FROM avatars WHERE user_id = $1::uuid RETURNING true
    )
    SELECT EXISTS (SELECT FROM image) FROM users WHERE id = $1::uuid
    """,
    row=bool,
)

_SHOWN = "users.id = $1::uuid AND users.avatar_extension = $2::text"
_PUBLIC = f"{_SHOWN} AND NOT {SUSPENDED}"

AVATAR = Query(
    "avatar",
    f"SELECT image, etag FROM avatars JOIN users ON users.id = avatars.user_id WHERE {_PUBLIC}",  # noqa: S608
    row=converted(Avatar, image=bytes),
)

ANY_AVATAR = Query(
    "admin_avatar",
    f"SELECT image, etag FROM avatars JOIN users ON users.id = avatars.user_id WHERE {_SHOWN}",  # noqa: S608
    prepared=False,
    row=converted(Avatar, image=bytes),
)


async def replace(statements: Statements, user_id: str, extension: str, image: bytes) -> Replaced | None:
    """Store the player's avatar in place of an older one; None if the player no longer exists."""
    encoded = b2a_base64(image, newline=False).decode("ascii")
    return await statements.maybe(REPLACE, user_id, extension, encoded, first=(LOCK, user_id))


async def remove(statements: Statements, user_id: str) -> bool | None:
    """Delete the player's avatar; False without an avatar, None without a player."""
    return await statements.maybe(REMOVE, user_id, first=(LOCK, user_id))


@maybe(
    f"SELECT etag FROM avatars JOIN users ON users.id = avatars.user_id WHERE {_PUBLIC}",  # noqa: S608
    row=str,
)
async def etag(user_id: str, extension: str) -> str | None:
    """The ETag of the player's avatar; None if it has another extension or the player is suspended."""


async def avatar(statements: Statements, user_id: str, extension: str, *, suspended_too: bool = False) -> Avatar | None:
    """The player's avatar; None if it has another extension, or the player is suspended and not `suspended_too`."""
    return await statements.maybe(ANY_AVATAR if suspended_too else AVATAR, user_id, extension)
