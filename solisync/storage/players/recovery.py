"""Recovery codes and reset tokens, by their digests: docs/security.md "Lost passwords".

Every transaction that makes, spends or deletes them locks the player's row first. So two transactions take turns, and
each statement after the lock sees what the other transaction has stored. When the password changes, a trigger deletes
the player's reset token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from ...postgres.declared import count, execute, maybe, one
from ...postgres.statement import Query, Statement
from ...postgres.transaction import Statements, Transaction
from ...rules.recovery import CodesLeft
from ..retention import NOW
from .accounts import LOCK, Player


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to recover an account: the player, and whether the code was right and is spent."""

    id: str
    spent: bool


# The row must still hold the hash that was verified, as when a session begins: another password may have been set while
# bcrypt ran.
REPLACE_CODES = Query(
    "replace_recovery_codes",
    """
    WITH player AS (
        SELECT id FROM users
        WHERE id = $1::uuid AND encode(sha256(convert_to(password_hash, 'UTF8')), 'hex') = $2::text
    ), former AS (
        DELETE FROM recovery_codes USING player WHERE user_id = player.id
    ), made AS (
        INSERT INTO recovery_codes (user_id, digest, made_at)
        SELECT id, digest, now FROM player, unnest($3::bytea[]) AS digest, clock_timestamp() AS now
        RETURNING made_at
    )
    SELECT max(made_at) AS made_at FROM made
    """,
    row=lambda made_at: made_at,
)

# A wrong code locks nothing, and so writes nothing: guesses make no other request of the player wait.
LOCK_BY_CODE = Statement(
    "lock_by_code",
    """
    SELECT true FROM users
    WHERE username = $1 AND EXISTS (SELECT FROM recovery_codes WHERE user_id = users.id AND digest = $2::bytea)
    FOR NO KEY UPDATE OF users
    """,
)
SPEND_CODE = Query(
    "spend_code",
    """
    WITH spent AS (
        DELETE FROM recovery_codes USING users WHERE username = $1 AND user_id = users.id AND digest = $2::bytea
        RETURNING user_id
    ), changed AS (
        UPDATE users SET password_hash = $3::text FROM spent WHERE id = spent.user_id RETURNING true
    )
    SELECT id, EXISTS (SELECT FROM changed) AS spent FROM users WHERE username = $1
    """,
    row=Attempt,
)

LOCK_BY_TOKEN = Statement(
    "lock_by_token",
    """
    SELECT true FROM users
    WHERE id = (SELECT user_id FROM reset_tokens WHERE digest = $1::bytea AND expires_at > clock_timestamp())
    FOR NO KEY UPDATE
    """,
)
SPEND_TOKEN = Query(
    "spend_token",
    """
    WITH spent AS (
        DELETE FROM reset_tokens WHERE digest = $1::bytea AND expires_at > clock_timestamp() RETURNING user_id
    ), codes AS (
        DELETE FROM recovery_codes USING spent WHERE recovery_codes.user_id = spent.user_id
    )
    UPDATE users SET password_hash = $2::text FROM spent WHERE id = spent.user_id RETURNING id, username
    """,
    row=Player,
)

PUT_TOKEN = Query(
    "admin_put_reset_token",
    """
    INSERT INTO reset_tokens (user_id, digest, expires_at)
    SELECT id, $2::bytea, clock_timestamp() + $3::interval FROM users WHERE id = $1::uuid
    ON CONFLICT (user_id) DO UPDATE SET digest = excluded.digest, expires_at = excluded.expires_at
    RETURNING expires_at
    """,
    row=lambda expires_at: expires_at,
)


async def replace_codes(
    statements: Statements, user_id: str, digests: Sequence[bytes], *, verified_hash: str
) -> datetime | None:
    """Replace the recovery codes of a player; return the time when they were made.

    None if the verified password hash has been replaced, or the player no longer exists.
    """
    verified = sha256(verified_hash.encode()).hexdigest()
    made_at: datetime | None = await statements.one(
        REPLACE_CODES, user_id, verified, list(digests), first=(LOCK, user_id)
    )
    return made_at


@maybe(
    """
    SELECT count(made_at) AS left, max(made_at) AS created_at
    FROM users LEFT JOIN recovery_codes ON user_id = id WHERE id = $1::uuid GROUP BY id
    """,
    row=CodesLeft,
)
async def codes_left(user_id: str) -> CodesLeft | None:
    """The number of recovery codes that a player has; None if the player no longer exists."""


async def spend_code(transaction: Transaction, username: str, digest: bytes, password_hash: str) -> Attempt | None:
    """Spend a recovery code for a new password; None if the player doesn't exist.

    If the code is spent, the player's row is locked. The player's other codes stay.
    """
    lock = (LOCK_BY_CODE, username, digest)
    return await transaction.maybe(SPEND_CODE, username, digest, password_hash, first=lock)


async def spend_token(transaction: Transaction, digest: bytes, password_hash: str) -> Player | None:
    """Spend a reset token for a new password, and delete the player's recovery codes; None if the token isn't live.

    If the token is spent, the player's row is locked.
    """
    return await transaction.maybe(SPEND_TOKEN, digest, password_hash, first=(LOCK_BY_TOKEN, digest))


async def put_token(transaction: Transaction, user_id: str, digest: bytes, lifetime: timedelta) -> datetime:
    """Give a player, whose row is locked, a reset token in place of a former one; return the time when it expires."""
    expires_at: datetime = await transaction.one(PUT_TOKEN, user_id, digest, lifetime)
    return expires_at


@execute("DELETE FROM reset_tokens WHERE user_id = $1::uuid")
async def forget_link(user_id: str) -> None:
    """Delete the reset token of a player, whose row is locked."""


@count(f"""
    DELETE FROM reset_tokens WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM reset_tokens WHERE expires_at <= {NOW} LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)  # noqa: S608
async def prune(*, most: int) -> int:
    """Delete up to `most` expired reset tokens; return their number."""


@one("SELECT count(*) FROM reset_tokens WHERE expires_at > clock_timestamp()", row=int)
async def count_open() -> int:
    """The number of live reset tokens."""
