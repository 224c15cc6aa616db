"""Refresh tokens: each is one row, spent by deleting it; docs/security.md "Tokens and sessions".

Every statement that inserts a refresh token locks the player's row first. A password reset and a deletion lock it too,
so a session is either older than they are, and removed by them, or finds the new password or no player.
"""

from datetime import datetime
from hashlib import sha256

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from .accounts import LOCK, REVOKE

# The row must still hold the hash that was verified: a reset may have committed while bcrypt ran. It is compared by a
# digest, because a statement's parameters are in its text, which the server may log or show to others.
BEGIN_SESSION = Statement(
    "begin_session",
    """
    WITH player AS (
        SELECT id FROM users
        WHERE id = $1::uuid AND encode(sha256(convert_to(password_hash, 'UTF8')), 'hex') = $2::text
        FOR NO KEY UPDATE
    )
    INSERT INTO refresh_tokens (jti, user_id, expires_at)
    SELECT $3::uuid, id, $4::timestamptz FROM player
    RETURNING true
    """,
)

# One statement, because the data flow fixes the order that matters: `player` is locked before a row of
# refresh_tokens reaches the DELETE, and pruning starts only once that DELETE has found its row and then waits for no
# lock. Of any number of these with one jti, exactly one deletes the row; the others find it gone.
#
# Pruning names rows by ctid, which can't change under the lock: it costs what it deletes, where "jti IN (…)" may be
# planned as a scan of the whole table or as a subquery that is run, and locks more, for every row. Oldest first, so
# that the index is used even before the table was first analyzed.
#
# What is pruned has expired by the database's clock too: the clock of a node may be a month ahead. In a subquery,
# because clock_timestamp() is volatile, and the index is not used for what might differ from row to row.
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
        WHERE expires_at <= (SELECT least($3::timestamptz, clock_timestamp())) AND EXISTS (SELECT FROM spent)
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
        SELECT ctid FROM refresh_tokens WHERE expires_at <= (SELECT least($1::timestamptz, clock_timestamp()))
        ORDER BY expires_at LIMIT $2::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """,
)

LIST = Statement(
    "admin_sessions",
    """
    SELECT expires_at FROM refresh_tokens WHERE user_id = $1::uuid AND expires_at > clock_timestamp()
    ORDER BY expires_at
    """,
    prepared=False,
)

# Every transaction that inserts a refresh token locks a player's row. This waits for those that hold such a lock, and
# keeps out the others; reading goes on.
LOCK_EVERYONE = Statement("admin_lock_everyone", "LOCK TABLE users IN EXCLUSIVE MODE", prepared=False)
REVOKE_SOME = Statement(
    "admin_revoke_some",
    """
    DELETE FROM refresh_tokens WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM refresh_tokens LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """,
    prepared=False,
)
REVOKE_EVERYONE = Statement("admin_revoke_everyone", "DELETE FROM refresh_tokens RETURNING true", prepared=False)


async def begin(transaction: Transaction, user_id: str, *, verified_hash: str, jti: str, expires: datetime) -> bool:
    """Store a refresh token; False when the player is gone or their password is no longer the one verified."""
    digest = sha256(verified_hash.encode()).hexdigest()
    return bool(await transaction.run(BEGIN_SESSION, user_id, digest, jti, expires))


async def rotate(
    transaction: Transaction, user_id: str, *, spent: str, now: datetime, jti: str, expires: datetime
) -> bool:
    """Replace a refresh token by another and prune expired ones of all players; False when it was spent or expired."""
    return bool(await transaction.run(ROTATE, user_id, spent, now, jti, expires))


async def prune(transaction: Transaction, now: datetime, *, most: int) -> int:
    """Delete up to `most` refresh tokens that have expired, by `now` and by the database's clock, and are not locked.

    Returns how many.
    """
    return len(await transaction.run(PRUNE, now, most))


async def expiries(transaction: Transaction, user_id: str) -> list[datetime]:
    """When the player's refresh tokens expire, the first first."""
    return [expires for (expires,) in await transaction.run(LIST, user_id)]


async def revoke(transaction: Transaction, user_id: str) -> int:
    """Delete a player's refresh tokens; returns how many. Needs a transaction.

    Two statements on purpose: the lock waits for a refresh in flight, and the second statement then sees its token.
    """
    return len(await transaction.run_all((LOCK, user_id), (REVOKE, user_id)))


async def revoke_some(transaction: Transaction, *, most: int) -> int:
    """Delete up to `most` refresh tokens of anybody that are not locked; returns how many."""
    return len(await transaction.run(REVOKE_SOME, most))


async def revoke_everyone(transaction: Transaction) -> int:
    """Delete all refresh tokens, also those of refreshes in flight; returns how many. Needs a transaction.

    A refresh that waits for this lock finds its token gone.
    """
    return len(await transaction.run_all((LOCK_EVERYONE,), (REVOKE_EVERYONE,)))
