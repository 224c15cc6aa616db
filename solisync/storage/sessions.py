"""Refresh tokens: each is one row, spent by deleting it.

Whoever inserts a refresh token locks the player's row first. A password reset and a deletion lock it too, so every
session is either older than they are, and removed by them, or sees what they did.
"""

from datetime import datetime

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction

# The row must still hold the hash that was verified: a reset may have committed while bcrypt ran.
BEGIN_SESSION = Statement(
    "begin_session",
    """
    WITH player AS (
        SELECT id FROM users WHERE id = $1::uuid AND password_hash = $2::text FOR NO KEY UPDATE
    )
    INSERT INTO refresh_tokens (jti, user_id, expires_at)
    SELECT $3::uuid, id, $4::timestamptz FROM player
    RETURNING true
    """,
)

# One statement, because the data flow fixes the order that matters: `player` is locked before a row of
# refresh_tokens reaches the DELETE, and pruning starts only once that DELETE has found its row and then waits for
# nobody. Of any number of these with one jti, exactly one deletes the row; the others find it gone.
#
# Pruning names rows by ctid, which can't change under the lock: it costs what it deletes, where "jti IN (…)" may be
# planned as a scan of the whole table or as a subquery that is run, and locks more, for every row. Oldest first, so
# that the index is used even before the table was first analyzed.
ROTATE = Statement(
    "rotate_session",
    """
    WITH player AS (
        SELECT id FROM users WHERE id = $1::uuid FOR NO KEY UPDATE
    ), spent AS (
        DELETE FROM refresh_tokens USING player
        WHERE jti = $2::uuid AND user_id = player.id AND expires_at > $3::timestamptz
        RETURNING user_id
    ), expired AS (
        SELECT ctid FROM refresh_tokens
        WHERE expires_at <= $3::timestamptz AND EXISTS (SELECT FROM spent)
        ORDER BY expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED
    ), pruned AS (
        DELETE FROM refresh_tokens WHERE ctid = ANY (ARRAY(SELECT ctid FROM expired))
    )
    INSERT INTO refresh_tokens (jti, user_id, expires_at)
    SELECT $4::uuid, user_id, $5::timestamptz FROM spent
    RETURNING true
    """,
)

PRUNE = Statement(
    "prune_sessions",
    """
    DELETE FROM refresh_tokens WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM refresh_tokens WHERE expires_at <= $1::timestamptz
        ORDER BY expires_at LIMIT $2::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """,
)


async def begin(transaction: Transaction, user_id: str, *, verified_hash: str, jti: str, expires: datetime) -> bool:
    """Store a refresh token; False when the player is gone or their password is no longer the one verified."""
    return bool(await transaction.run(BEGIN_SESSION, user_id, verified_hash, jti, expires))


async def rotate(
    transaction: Transaction, user_id: str, *, spent: str, now: datetime, jti: str, expires: datetime
) -> bool:
    """Spend one refresh token for another, pruning expired ones of anybody; False when it wasn't live."""
    return bool(await transaction.run(ROTATE, user_id, spent, now, jti, expires))


async def prune(transaction: Transaction, now: datetime, *, most: int) -> int:
    """Delete up to `most` expired refresh tokens that nobody holds; returns how many."""
    return len(await transaction.run(PRUNE, now, most))
