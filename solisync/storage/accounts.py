"""Players' accounts."""

from dataclasses import dataclass
from datetime import datetime

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from .rows import maybe, one


@dataclass(frozen=True, slots=True)
class Profile:
    """What a player sees of their own row; `username` is None only in a database altered by hand."""

    username: str | None
    avatar_extension: str | None


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a login is verified against."""

    user_id: str
    password_hash: str


# What every transaction begins with that writes what is a player's.
LOCK = Statement("lock_player", "SELECT true FROM users WHERE id = $1::uuid FOR NO KEY UPDATE")

TAKEN = Statement("username_taken", "SELECT EXISTS (SELECT FROM users WHERE username = $1)")

# One statement, so that a new player and the first refresh token appear together or not at all.
REGISTER = Statement(
    "register",
    """
    WITH player AS (
        INSERT INTO users (id, username, password_hash, created_at)
        VALUES ($1::uuid, $2::text, $3::text, $4::timestamptz)
        ON CONFLICT (username) DO NOTHING
        RETURNING id
    )
    INSERT INTO refresh_tokens (jti, user_id, expires_at)
    SELECT $5::uuid, id, $6::timestamptz FROM player
    RETURNING true
    """,
)

PROFILE = Statement("profile", "SELECT username, avatar_extension FROM users WHERE id = $1::uuid")
CREDENTIALS = Statement("credentials", "SELECT id, password_hash FROM users WHERE username = $1")

# Analytics may name the player by id or username. A username of 32 hexadecimal digits is stored there as a UUID.
DELETE = Statement(
    "delete_account",
    """
    WITH player AS (
        DELETE FROM users WHERE id = $1::uuid RETURNING id::text, username
    ), names AS (
        DELETE FROM analytics_names USING player
        WHERE name = ANY (ARRAY[
            player.id, username, CASE WHEN username ~ '^[0-9A-Fa-f]{32}$' THEN username::uuid::text END
        ])
    )
    SELECT true FROM player
    """,
)
SET_PASSWORD = Statement("set_password", "UPDATE users SET password_hash = $2::text WHERE username = $1 RETURNING id")
REVOKE = Statement("revoke_sessions", "DELETE FROM refresh_tokens WHERE user_id = $1::uuid")


async def is_taken(transaction: Transaction, username: str) -> bool:
    """Whether a player of this name exists."""
    return one(bool, await transaction.run(TAKEN, username))


async def register(
    transaction: Transaction,
    *,
    user_id: str,
    username: str,
    password_hash: str,
    now: datetime,
    jti: str,
    refresh_expires: datetime,
) -> bool:
    """Create a player and their first refresh token; False when the name is taken."""
    return bool(await transaction.run(REGISTER, user_id, username, password_hash, now, jti, refresh_expires))


async def profile(transaction: Transaction, user_id: str) -> Profile | None:
    """What GET /api/me shows, or None when the player is gone."""
    return maybe(Profile, await transaction.run(PROFILE, user_id))


async def credentials(transaction: Transaction, username: str) -> Credentials | None:
    """The id and password hash of the player of this name."""
    return maybe(Credentials, await transaction.run(CREDENTIALS, username))


async def delete(transaction: Transaction, user_id: str) -> bool:
    """Delete a player, by cascade all that is theirs, and their names; False when they were gone already."""
    return bool(await transaction.run(DELETE, user_id))


async def reset_password(transaction: Transaction, username: str, password_hash: str) -> str | None:
    """Replace a password and end every session; returns whose, None when nobody has this name. Needs a transaction.

    Two statements on purpose: the first waits for whoever holds the player's row, and only a statement that begins
    after that wait sees the refresh token which a login stored meanwhile.
    """
    user_id = maybe(str, await transaction.run(SET_PASSWORD, username, password_hash))
    if user_id is not None:
        await transaction.run(REVOKE, user_id)
    return user_id
