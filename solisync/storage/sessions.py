"""Sessions: each is the row of its refresh token, replaced when that is spent; docs/security.md "Tokens and sessions".

Every statement that inserts a refresh token locks the player's row first. A password reset and a deletion lock it too,
so a session is either older than they are, and removed by them, or finds the new password or no player.
"""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from ..postgres.declared import count, found, maybe
from ..postgres.statement import Query, Statement
from ..postgres.transaction import Statements, Transaction
from ..rules.sessions import RefreshRecord, Session
from .accounts import LOCK
from .rate_limits import Hit, counting

MOST = 100  # live sessions of a player
TOKENS_MAX = 57  # of a player within 60 seconds, of 61 free values of `exp`; logins may take the last ones


@dataclass(frozen=True, slots=True)
class Begun:
    """`exp` of the access token of a new session, and whether another session has ended for it."""

    access_expiry: int
    ended: bool


# The row must still hold the hash that was verified: a reset may have committed while bcrypt ran. It is compared by a
# digest, because a statement's parameters are in its text, which the server may log or show to others.
#
# It runs after LOCK, in one round trip: only so does it see all sessions that were begun before.
BEGIN_SESSION = Query(
    "begin_session",
    f"""
    WITH player AS (
        UPDATE users SET access_expiries = with_access_expiry(access_expiries, $3::bigint)
        WHERE id = $1::uuid AND encode(sha256(convert_to(password_hash, 'UTF8')), 'hex') = $2::text
            AND NOT EXISTS (SELECT FROM suspensions WHERE user_id = $1::uuid)
        RETURNING id, access_expiries[1] AS access_expiry
    ), surplus AS (
        DELETE FROM refresh_tokens WHERE jti IN (
            SELECT jti FROM refresh_tokens JOIN player ON player.id = user_id
            WHERE expires_at > clock_timestamp()
            ORDER BY coalesce(used_at, expires_at - interval '30 days') DESC, jti OFFSET {MOST - 1}
        )
        RETURNING session_id
    ), forgotten AS (
        DELETE FROM known_states WHERE session_id IN (SELECT session_id FROM surplus)
    )
    INSERT INTO refresh_tokens
        (jti, user_id, expires_at, session_id, begun_at, used_at, user_agent, access_expiry)
    SELECT $4::uuid, id, $5::timestamptz, gen_random_uuid(), now, now, $6::text, access_expiry
    FROM player, clock_timestamp() AS now
    RETURNING access_expiry, EXISTS (SELECT FROM surplus) AS ended
    """,  # noqa: S608
    row=Begun,
)

# One statement, because the data flow fixes the order that matters: `player` is locked before a row of
# refresh_tokens reaches the DELETE, and pruning starts only once that DELETE has found its row and then waits for no
# lock. Of any number of these with one jti, exactly one deletes the row; the others find it gone. What is free for
# `exp` is chosen from the newest version of the player's row, as the lock has found it, and only if the token is live.
#
# Pruning names rows by ctid, which can't change under the lock: it costs what it deletes, where "jti IN (…)" may be
# planned as a scan of the whole table or as a subquery that is run, and locks more, for every row. Oldest first, so
# that the index is used even before the table was first analyzed.
#
# The planner doesn't know that next to nothing has expired. Without a lower bound it expects a third of the table, with
# one a two-hundredth, and so takes the index also where the table is small. There, it may still plan `pruned` as a scan
# of the whole table, which EXISTS then skips. With a thousand sessions this saves a third of the statement.
#
# What is pruned has expired by the database's clock too: the clock of a node may be a month ahead. In a subquery,
# because clock_timestamp() is volatile, and the index is not used for what might differ from row to row.
#
# Refreshes leave the last free seconds for `exp` to logins, because a thief who refreshes without end would keep the
# player out. A refresh that is one too many finds every second taken.
#
# Fast path: replaces a statement before this one that counts the request, a round trip, see docs/performance.md. The
# row of the limit is locked first and until the commit. The only other statement that locks such a row and a player's
# deletes an account, and takes rows of that player, not of an address: so there is no deadlock. A statement that fails
# has counted nothing.
ROTATE = Statement(
    "rotate_session",
    f"""
    WITH hit (wait) AS (
        {counting("$8", "$9", "$10")}
    ), player AS (
        SELECT id FROM users, hit WHERE wait IS NULL AND id = $1::uuid FOR NO KEY UPDATE OF users
    ), spent AS (
        DELETE FROM refresh_tokens USING player
        WHERE jti = $2::uuid AND user_id = player.id AND expires_at > $3::timestamptz
        RETURNING user_id, jti, access_expiry, coalesce(session_id, jti) AS session_id,
            coalesce(begun_at, expires_at - interval '30 days') AS begun_at
    ), expired AS (
        SELECT ctid FROM refresh_tokens
        WHERE expires_at BETWEEN '-infinity' AND (SELECT least($3::timestamptz, clock_timestamp()))
            AND EXISTS (SELECT FROM spent)
        ORDER BY expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED
    ), pruned AS (
        DELETE FROM refresh_tokens WHERE EXISTS (SELECT FROM expired) AND ctid = ANY (ARRAY(SELECT ctid FROM expired))
    ), issued AS (
        UPDATE users SET access_expiries = with_access_expiry(
            CASE WHEN {TOKENS_MAX} > (SELECT count(*) FROM unnest(access_expiries) AS each WHERE each > $6::bigint - 60)
                THEN access_expiries ELSE ARRAY(SELECT generate_series($6::bigint - 60, $6::bigint)) END,
            $6::bigint
        )
        FROM spent WHERE id = spent.user_id
        RETURNING access_expiries[1] AS access_expiry
    ), rotated AS (
        INSERT INTO refresh_tokens
            (jti, user_id, expires_at, session_id, begun_at, used_at, user_agent, access_expiry,
            spent_jti, retry_digest, access_expiry_before)
        SELECT $4::uuid, user_id, $5::timestamptz, session_id, begun_at, clock_timestamp(), $7::text,
            issued.access_expiry, spent.jti, $11::bytea, spent.access_expiry
        FROM spent, issued
        RETURNING access_expiry
    )
    SELECT wait, access_expiry FROM hit LEFT JOIN rotated ON true
    """,  # noqa: S608
)

# Those that end one session or all run after LOCK: only so do they see what a refresh in flight has stored.
END = Query(
    "end_session",
    """
    WITH ended AS (
        DELETE FROM refresh_tokens
        WHERE user_id = $1::uuid AND coalesce(session_id, jti) = $2::uuid AND expires_at > clock_timestamp()
        RETURNING session_id
    ), forgotten AS (
        DELETE FROM known_states WHERE session_id IN (SELECT session_id FROM ended)
    )
    SELECT EXISTS (SELECT FROM ended) FROM users WHERE id = $1::uuid
    """,
    row=bool,
)
END_ALL = Query(
    "end_sessions",
    """
    WITH ended AS (
        DELETE FROM refresh_tokens WHERE user_id = $1::uuid RETURNING expires_at
    ), forgotten AS (
        DELETE FROM known_states WHERE user_id = $1::uuid
    )
    SELECT (SELECT count(*) FROM ended WHERE expires_at > clock_timestamp()) FROM users WHERE id = $1::uuid
    """,
    row=int,
)

LIST = Query(
    "list_sessions",
    """
    SELECT coalesce(session_id, jti) AS id, coalesce(begun_at, expires_at - interval '30 days') AS begun_at,
        coalesce(used_at, expires_at - interval '30 days') AS used_at, expires_at, user_agent,
        coalesce($2::bigint IN (access_expiry, access_expiry_before), false) AS current
    FROM users LEFT JOIN refresh_tokens ON user_id = id AND expires_at > clock_timestamp()
    WHERE id = $1::uuid
    ORDER BY 3 DESC, jti
    """,
    row=Session,
)

# Every transaction that inserts a refresh token locks a player's row. This waits for those that hold such a lock, and
# keeps out the others; reading goes on.
LOCK_EVERYONE = Statement("admin_lock_everyone", "LOCK TABLE users IN EXCLUSIVE MODE", prepared=False)
REVOKE_EVERYONE = Statement("admin_revoke_everyone", "DELETE FROM refresh_tokens RETURNING true", prepared=False)


async def begin(statements: Statements, user_id: str, record: RefreshRecord, *, verified_hash: str) -> Begun | None:
    """Begin a session, and end the one used longest ago of MOST.

    None when the player is gone or suspended, or their password is no longer the one verified. Raises Unavailable when
    no second is free for `exp`.
    """
    digest = sha256(verified_hash.encode()).hexdigest()
    values = (user_id, digest, record.access_expiry, record.jti, record.expires, record.user_agent)
    return await statements.maybe(BEGIN_SESSION, *values, first=(LOCK, user_id))


async def rotate(
    statements: Statements,
    user_id: str,
    record: RefreshRecord,
    *,
    spent: str,
    retry_digest: bytes | None = None,
    now: datetime,
    hit: Hit,
) -> tuple[float | None, int | None]:
    """Count a request; if it is admitted, replace a refresh token by another and prune expired ones of all players.

    Returns what counting returned, and `exp` of the access token: None when the token was spent or has expired, or the
    request is not admitted. Raises Unavailable when no second is free for `exp`; then nothing has been counted.
    """
    new = (record.jti, record.expires, record.access_expiry, record.user_agent)
    ((wait, expiry),) = await statements.run(ROTATE, user_id, spent, now, *new, *hit, retry_digest)
    return wait, expiry


@dataclass(frozen=True, slots=True)
class Successor:
    """The live refresh token for which another was spent; `repeatable`, whether the same refresh may be repeated."""

    jti: str
    expires_at: datetime
    access_expiry: int
    repeatable: bool


@maybe(
    """
    SELECT jti::text, expires_at, access_expiry,
        coalesce(retry_digest = $3::bytea AND used_at > clock_timestamp() - interval '24 hours', false) AS repeatable
    FROM refresh_tokens
    WHERE user_id = $1::uuid AND spent_jti = $2::uuid AND expires_at > greatest($4::timestamptz, clock_timestamp())
    """,
    row=Successor,
)
async def successor(user_id: str, spent: str, retry_digest: bytes | None, now: datetime) -> Successor | None:
    """The token for which this one was spent, if it is neither spent nor expired; None otherwise."""


# A spent token ends nothing: the session goes on under a newer one. The player's row is not locked: this deletes one
# row or none, and whoever repeats it without end should cause no writing.
@found("""
    WITH ended AS (
        DELETE FROM refresh_tokens WHERE jti = $2::uuid AND user_id = $1::uuid RETURNING session_id
    ), forgotten AS (
        DELETE FROM known_states WHERE session_id IN (SELECT session_id FROM ended)
    )
    SELECT true FROM ended
    """)
async def log_out(user_id: str, jti: str) -> bool:
    """End the session of a refresh token; False when the token was spent, or its session ended, before."""


async def end(statements: Statements, user_id: str, session_id: str | None) -> bool | None:
    """End a live session of the player; False when they have no such session, None when they are gone."""
    return await statements.maybe(END, user_id, session_id, first=(LOCK, user_id))


async def end_all(statements: Statements, user_id: str) -> int | None:
    """End every session of the player; returns how many were live, None when the player is gone."""
    return await statements.maybe(END_ALL, user_id, first=(LOCK, user_id))


async def listed(statements: Statements, user_id: str, access_expiry: int | None = None) -> list[Session] | None:
    """The live sessions of the player, last used first; None when the player is gone.

    Current is the one whose newest access token, or the one before, has this `exp`.
    """
    rows = await statements.run(LIST, user_id, access_expiry)
    return LIST.values(row for row in rows if row[0] is not None) if rows else None


@count("""
    DELETE FROM refresh_tokens WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM refresh_tokens WHERE expires_at <= (SELECT least($1::timestamptz, clock_timestamp()))
        ORDER BY expires_at LIMIT $2::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)
async def prune(now: datetime, *, most: int) -> int:
    """Delete up to `most` refresh tokens that have expired, by `now` and by the database's clock, and are not locked.

    Returns how many.
    """


@count(
    """
    DELETE FROM refresh_tokens WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM refresh_tokens LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """,
    prepared=False,
)
async def revoke_some(*, most: int) -> int:
    """Delete up to `most` refresh tokens of anybody that are not locked; returns how many."""


async def revoke_everyone(transaction: Transaction) -> int:
    """Delete all refresh tokens, also those of refreshes in flight; returns how many.

    A refresh that waits for this lock finds its token gone.
    """
    return len(await transaction.run_all((LOCK_EVERYONE,), (REVOKE_EVERYONE,)))
