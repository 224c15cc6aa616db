"""Sessions, each stored as the row of its refresh token: docs/security.md "Tokens and sessions".

A refresh replaces the row. Every statement that inserts a refresh token locks the player's row first, as do a password
reset and a deletion. So a session either is older than they are and is deleted by them, or finds the new password or no
player.
"""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from ...postgres.declared import count, execute, found, maybe
from ...postgres.statement import Query, Statement
from ...postgres.transaction import Statements, Transaction
from ...rules.sessions import RefreshRecord, Session
from ..rate_limits import Hit, counting
from ..retention import NOW
from .accounts import LOCK

MOST = 100  # live sessions of a player
NAMED = "$2::bigint IN (access_expiry, access_expiry_before) AND expires_at > clock_timestamp()"
"""SQL for a player's session that is named by an access token with the `exp` $2: SessionRef."""

TOKENS_MAX = 57  # of a player in 60 seconds, for which 61 values of `exp` are free; logins may take the last ones


@dataclass(frozen=True, slots=True)
class Begun:
    """The `exp` of a new session's access token, and whether an older session was ended to make room."""

    expiry: int
    ended: bool


def _beginning(name: str, condition: str) -> Query[Begun]:
    """The statement that begins a session of the player $1, if this condition on $2 holds.

    It runs after LOCK, in the same round trip, and so sees all sessions that began before.
    """
    return Query(
        name,
        f"""
        WITH player AS (
            UPDATE users SET access_expiries = with_access_expiry(access_expiries, $5::bigint)
            WHERE id = $1::uuid AND {condition}
                AND NOT EXISTS (SELECT FROM suspensions WHERE user_id = $1::uuid)
            RETURNING id, access_expiries[1] AS access_expiry
        ), surplus AS (
            DELETE FROM refresh_tokens WHERE jti IN (
                SELECT jti FROM refresh_tokens JOIN player ON player.id = user_id
                WHERE expires_at > clock_timestamp()
                ORDER BY used_at DESC, jti OFFSET {MOST - 1}
            )
            RETURNING session_id
        ), forgotten AS (
            DELETE FROM known_states WHERE session_id IN (SELECT session_id FROM surplus)
        )
        INSERT INTO refresh_tokens
            (jti, user_id, expires_at, session_id, begun_at, used_at, user_agent, access_expiry, retry_digest)
        SELECT $3::uuid, id, $4::timestamptz, gen_random_uuid(), now, now, $6::text, access_expiry, $7::bytea
        FROM player, clock_timestamp() AS now
        RETURNING access_expiry AS expiry, EXISTS (SELECT FROM surplus) AS ended
        """,  # noqa: S608
        row=Begun,
    )


# The row must still hold the hash that was verified, because a reset may have committed while bcrypt ran. The statement
# compares a digest, because its text contains its parameters, and the server may log or show that text.
BEGIN_SESSION = _beginning("begin_session", "encode(sha256(convert_to(password_hash, 'UTF8')), 'hex') = $2::text")
# The key must still be this guest's, because a claim may have committed since it was found.
BEGIN_SESSION_OF_GUEST = _beginning(
    "begin_session_of_guest", "EXISTS (SELECT FROM guest_keys WHERE digest = $2::bytea AND user_id = users.id)"
)

# A session that a refresh has continued can no longer be begun again: its row names the spent token.
BEGUN = Query(
    "session_begun",
    """
    SELECT jti::text, expires_at AS expires, access_expiry, user_agent, $2::bytea AS retry_digest FROM refresh_tokens
    WHERE user_id = $1::uuid AND retry_digest = $2::bytea AND spent_jti IS NULL AND expires_at > clock_timestamp()
        AND begun_at > clock_timestamp() - interval '24 hours'
    """,
    row=RefreshRecord,
)


class Rotated(NamedTuple):
    """The `exp` of the access token of a refresh, and the player.

    `username` is None only in a database that was altered by hand.
    """

    expiry: int
    username: str | None
    guest: bool


# This is one statement, because its data flow fixes the order that matters. `player` is locked before `live` looks for
# the token. Pruning starts only once `live` has locked its row, and then waits for no lock. Of any number of these
# statements with the same jti, exactly one finds the row; for the others it has another jti by then. A free `exp` is
# chosen from the newest version of the player's row, as the lock has found it, and only if the token is live.
#
# The row is updated, not replaced: a DELETE and an INSERT cost a sixth more, with a trigger and a foreign key. A
# suspended player has no row, because a suspension deletes all sessions under the lock of the player's row.
#
# Pruning names rows by ctid, which can't change under the lock, so it costs only what it deletes. "jti IN (…)" may be
# planned as a scan of the whole table, or as a subquery that runs, and locks more rows, for every row. The ORDER BY
# makes the planner use the index even before the table was first analyzed.
#
# The planner doesn't know that next to nothing has expired. Without a lower bound it expects a third of the table; with
# one it expects a two-hundredth, and so uses the index for a small table too. There, it may still plan `pruned` as a
# scan of the whole table, which EXISTS then skips. With a thousand sessions this saves a third of the statement.
#
# Pruned tokens have expired by the retention clock, because any other clock may be a month ahead.
#
# Refreshes leave the last free values of `exp` to logins. Otherwise a thief who refreshes without end would keep the
# player out. A refresh beyond that finds every second taken.
#
# Fast path: replaces a statement before this one that counts the request, a round trip, see docs/performance.md. The
# row of the limit is locked first and until the commit. Only the deletion of an account also locks such a row and a
# player's, and it takes the rows of that player's limits, not of an address. So the two can't deadlock. A statement
# that fails has counted nothing.
ROTATE = Statement(
    "rotate_session",
    f"""
    WITH hit (wait) AS (
        {counting("$8", "$9", "$10")}
    ), player AS (
        SELECT id, username, guest FROM users, hit WHERE wait IS NULL AND id = $1::uuid FOR NO KEY UPDATE OF users
    ), live AS (
        SELECT jti, user_id FROM refresh_tokens, player
        WHERE jti = $2::uuid AND user_id = player.id AND expires_at > $3::timestamptz FOR UPDATE OF refresh_tokens
    ), expired AS (
        SELECT ctid FROM refresh_tokens
        WHERE expires_at BETWEEN '-infinity' AND {NOW}
            AND EXISTS (SELECT FROM live)
        ORDER BY expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED
    ), pruned AS (
        DELETE FROM refresh_tokens WHERE EXISTS (SELECT FROM expired) AND ctid = ANY (ARRAY(SELECT ctid FROM expired))
    ), issued AS (
        UPDATE users SET access_expiries = with_access_expiry(
            CASE WHEN {TOKENS_MAX} > (SELECT count(*) FROM unnest(access_expiries) AS each WHERE each > $6::bigint - 60)
                THEN access_expiries ELSE ARRAY(SELECT generate_series($6::bigint - 60, $6::bigint)) END,
            $6::bigint
        )
        FROM live WHERE id = live.user_id
        RETURNING access_expiries[1] AS access_expiry, jti
    ), rotated AS (
        UPDATE refresh_tokens AS token SET
            jti = $4::uuid, expires_at = $5::timestamptz, used_at = clock_timestamp(), user_agent = $7::text,
            access_expiry = issued.access_expiry, access_expiry_before = token.access_expiry,
            spent_jti = token.jti, retry_digest = $11::bytea
        FROM issued WHERE token.jti = issued.jti
        RETURNING token.access_expiry
    )
    SELECT wait, access_expiry, username, guest IS TRUE FROM hit LEFT JOIN (rotated CROSS JOIN player) ON true
    """,  # noqa: S608
)

# END and END_ALL run after LOCK, and so see what a refresh in flight has stored.
END = Query(
    "end_session",
    """
    WITH ended AS (
        DELETE FROM refresh_tokens
        WHERE user_id = $1::uuid AND session_id = $2::uuid AND expires_at > clock_timestamp()
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
    SELECT session_id AS id, begun_at, used_at, expires_at, user_agent,
        coalesce($2::bigint IN (access_expiry, access_expiry_before), false) AS current
    FROM users LEFT JOIN refresh_tokens ON user_id = id AND expires_at > clock_timestamp()
    WHERE id = $1::uuid
    ORDER BY used_at DESC, jti
    """,
    row=Session,
)

# Every transaction that inserts a refresh token locks a player's row. This lock waits for those transactions and blocks
# new ones, but no reads.
LOCK_EVERYONE = Statement("admin_lock_everyone", "LOCK TABLE users IN EXCLUSIVE MODE", prepared=False)
REVOKE_EVERYONE = Statement("admin_revoke_everyone", "DELETE FROM refresh_tokens RETURNING true", prepared=False)


async def begin(statements: Statements, user_id: str, record: RefreshRecord, *, verified_hash: str) -> Begun | None:
    """Begin a session; if the player has MOST already, end the one that was used longest ago.

    None if the player no longer exists or is suspended, or the password has changed since it was verified. Raises
    Unavailable if no second is free for `exp`.
    """
    digest = sha256(verified_hash.encode()).hexdigest()
    return await statements.maybe(BEGIN_SESSION, user_id, digest, *record, first=(LOCK, user_id))


async def begin_of_guest(statements: Statements, user_id: str, record: RefreshRecord, *, key: bytes) -> Begun | None:
    """Like `begin`, for a guest with the key of this digest; None if the guest has that key no longer."""
    return await statements.maybe(BEGIN_SESSION_OF_GUEST, user_id, key, *record, first=(LOCK, user_id))


async def begun(statements: Statements, user_id: str, retry_digest: bytes) -> RefreshRecord | None:
    """The record of the session that an equal request has begun within a day; None unless it is still unspent."""
    return await statements.maybe(BEGUN, user_id, retry_digest, first=(LOCK, user_id))


async def rotate(
    statements: Statements,
    user_id: str,
    record: RefreshRecord,
    *,
    spent: str,
    now: datetime,
    hit: Hit,
) -> tuple[float | None, Rotated | None]:
    """Count a request; if it is admitted, replace a refresh token and prune expired tokens of all players.

    Return the result of counting, and that of the refresh. The latter is None if the token was spent or has expired, or
    the request is not admitted. Raises Unavailable if no second is free for `exp`; then nothing was counted.
    """
    new = (record.jti, record.expires, record.access_expiry, record.user_agent)
    ((wait, *rotated),) = await statements.run((ROTATE, user_id, spent, now, *new, *hit, record.retry_digest))
    return wait, None if rotated[0] is None else Rotated(*rotated)


@dataclass(frozen=True, slots=True)
class Successor:
    """The live refresh token that replaced a spent one; `repeatable`: whether the refresh may be repeated."""

    jti: str
    expires_at: datetime
    expiry: int
    repeatable: bool
    username: str
    guest: bool


@maybe(
    """
    SELECT jti::text, expires_at, access_expiry AS expiry,
        coalesce(retry_digest = $3::bytea AND used_at > clock_timestamp() - interval '24 hours', false) AS repeatable,
        username, guest IS TRUE AS guest
    FROM refresh_tokens JOIN users ON users.id = user_id
    WHERE user_id = $1::uuid AND spent_jti = $2::uuid AND expires_at > greatest($4::timestamptz, clock_timestamp())
    """,
    row=Successor,
)
async def successor(user_id: str, spent: str, retry_digest: bytes | None, now: datetime) -> Successor | None:
    """The token that replaced this one; None if it is spent itself or has expired."""


# A spent token ends nothing, because its session continues under a newer one. The player's row is not locked: the
# statement deletes at most one row, and endless repetitions should write nothing.
@found("""
    WITH ended AS (
        DELETE FROM refresh_tokens WHERE jti = $2::uuid AND user_id = $1::uuid RETURNING session_id
    ), forgotten AS (
        DELETE FROM known_states WHERE session_id IN (SELECT session_id FROM ended)
    )
    SELECT true FROM ended
    """)
async def log_out(user_id: str, jti: str) -> bool:
    """End the session of a refresh token; False if the token was spent or its session had ended."""


async def end(statements: Statements, user_id: str, session_id: str | None) -> bool | None:
    """End a live session of the player; False without that session, None if the player no longer exists."""
    return await statements.maybe(END, user_id, session_id, first=(LOCK, user_id))


@maybe(f"SELECT jti FROM refresh_tokens WHERE user_id = $1::uuid AND {NAMED}", row=str)  # noqa: S608
async def named_by(user_id: str, expiry: int) -> str | None:
    """The refresh token of the live session that an access token names; None without such a session."""


@execute("""
    WITH ended AS (
        DELETE FROM refresh_tokens WHERE user_id = $1::uuid AND jti <> $2::uuid RETURNING session_id
    )
    DELETE FROM known_states WHERE session_id IN (SELECT session_id FROM ended)
    """)
async def end_others(user_id: str, jti: str) -> None:
    """End every session of the player but the one of this refresh token. Needs the lock of the player's row."""


async def end_all(statements: Statements, user_id: str) -> int | None:
    """End every session of the player; return the number of live ones, or None if the player no longer exists."""
    return await statements.maybe(END_ALL, user_id, first=(LOCK, user_id))


async def listed(statements: Statements, user_id: str, expiry: int | None = None) -> list[Session] | None:
    """The live sessions of the player, last used first; None if the player no longer exists.

    The current one is the session whose newest access token, or the one before, has this `exp`.
    """
    rows = await statements.run((LIST, user_id, expiry))
    return LIST.values(row for row in rows if row[0] is not None) if rows else None


@count(f"""
    DELETE FROM refresh_tokens WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM refresh_tokens WHERE expires_at <= {NOW}
        ORDER BY expires_at LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)  # noqa: S608
async def prune(*, most: int) -> int:
    """Delete up to `most` unlocked refresh tokens that have expired; return their number."""


@count(
    """
    DELETE FROM refresh_tokens WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM refresh_tokens LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """,
    prepared=False,
)
async def revoke_some(*, most: int) -> int:
    """Delete up to `most` unlocked refresh tokens of any player; return their number."""


async def revoke_everyone(transaction: Transaction) -> int:
    """Delete all refresh tokens, including those of refreshes in flight; return their number.

    A refresh that waits for this lock finds its token deleted.
    """
    return len(await transaction.run((LOCK_EVERYONE,), (REVOKE_EVERYONE,)))
