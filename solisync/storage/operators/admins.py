"""Admins, their codes and their sessions: docs/administration.md "Admins"."""

from datetime import datetime

from ...postgres.declared import count, execute, found, many, maybe, one
from ...rules.administration import CODE_LIFETIME, SESSION_IDLE, SESSION_LIFETIME, Admin, AdminSession
from ..retention import NOW


def _live(now: str) -> str:
    """SQL that is true for sessions that are live at a time.

    Constant times are written into it, so that nodes of one version always compare alike.
    """
    return f"""
        begun_at > {now} - interval '{SESSION_LIFETIME.total_seconds():.0f} s'
        AND used_at > {now} - interval '{SESSION_IDLE.total_seconds():.0f} s'
    """


_LIVE = _live("clock_timestamp()")
_SESSION = f"""
    id, admin, begun_at, used_at, begun_at + interval '{SESSION_LIFETIME.total_seconds():.0f} s' AS expires_at, client,
    user_agent
"""


@found("INSERT INTO admins (name) VALUES ($1::text) ON CONFLICT DO NOTHING RETURNING true", prepared=False)
async def add(name: str) -> bool:
    """Add an admin; False if the name is taken."""


@found("DELETE FROM admins WHERE name = $1::text RETURNING true", prepared=False)
async def remove(name: str) -> bool:
    """Remove an admin, with code and sessions; False if the admin doesn't exist."""


@many(
    f"""
    SELECT name, added_at, count(admin_sessions.id) AS sessions, max(used_at) AS used_at
    FROM admins LEFT JOIN admin_sessions ON admin = name AND {_LIVE} GROUP BY name ORDER BY name
    """,  # noqa: S608
    row=Admin,
)
async def listed() -> list[Admin]:
    """All admins, ordered by name."""


# A newer code replaces the older one. The lock waits for a removal of the admin, after which no code is made. No
# version since 1.1 reads `refused`, but nodes of 1.1 write it too, so the column stays.
@maybe(
    f"""
    INSERT INTO admin_codes (admin, digest, expires_at)
    SELECT name, $2::bytea, clock_timestamp() + interval '{CODE_LIFETIME.total_seconds():.0f} s'
    FROM admins WHERE name = $1::text FOR KEY SHARE
    ON CONFLICT (admin) DO UPDATE SET digest = excluded.digest, expires_at = excluded.expires_at, refused = 0
    RETURNING expires_at
    """,  # noqa: S608
    prepared=False,
    row=lambda expires_at: expires_at,
)
async def put_code(name: str, digest: bytes) -> datetime | None:
    """Give an admin a code in place of the former one; return the time when it expires.

    None if the admin doesn't exist.
    """


@many(
    "SELECT admin, digest FROM admin_codes WHERE expires_at > clock_timestamp()",
    row=lambda admin, digest: (admin, bytes(digest)),
)
async def live_codes() -> list[tuple[str, bytes]]:
    """The names of admins with a live code, and the digests of these codes."""


# This is a single statement: of several requests with the same code, exactly one deletes the code and begins a session.
# The statement locks the admin's row first and the code's row second. REMOVE locks the two rows in the same order,
# because its cascade deletes the code. In opposite orders, the two statements could wait for each other.
@maybe(
    f"""
    WITH spent AS (
        DELETE FROM admin_codes USING (SELECT name FROM admins WHERE name = $1::text FOR KEY SHARE) AS present
        WHERE admin = name AND digest = $2::bytea AND expires_at > clock_timestamp()
        RETURNING admin
    )
    INSERT INTO admin_sessions (admin, digest, begun_at, used_at, client, user_agent)
    SELECT admin, $3::bytea, now, now, $4::text, $5::text FROM spent, clock_timestamp() AS now
    RETURNING {_SESSION}
    """,  # noqa: S608
    row=AdminSession,
)
async def begin(name: str, code: bytes, *, secret: bytes, client: str, user_agent: str | None) -> AdminSession | None:
    """Spend a code for a session; None if the code is wrong. `code` and `secret` (the cookie's) are digests."""


@many(
    f"SELECT digest FROM admin_sessions WHERE {_LIVE}",  # noqa: S608
    row=bytes,
)
async def live_sessions() -> list[bytes]:
    """The digests of the cookies of all live sessions."""


# The time of the last use is written at most once a minute, without waiting for another request of the same session.
@maybe(
    f"""
    WITH found AS (
        SELECT {_SESSION} FROM admin_sessions WHERE digest = $1::bytea AND {_LIVE}
    ), used AS (
        UPDATE admin_sessions SET used_at = clock_timestamp() WHERE id = (
            SELECT admin_sessions.id FROM admin_sessions JOIN found USING (id)
            WHERE admin_sessions.used_at < clock_timestamp() - interval '1 minute' FOR UPDATE SKIP LOCKED
        )
    )
    SELECT id, admin, begun_at, used_at, expires_at, client, user_agent FROM found
    """,  # noqa: S608
    row=AdminSession,
)
async def find(secret: bytes) -> AdminSession | None:
    """Find the live session whose cookie has this digest, and record its use."""


@many(
    f"""
    SELECT {_SESSION} FROM admin_sessions WHERE {_LIVE} AND ($1::text IS NULL OR admin = $1::text)
    ORDER BY used_at DESC, id
    """,  # noqa: S608
    row=AdminSession,
)
async def sessions(name: str | None = None) -> list[AdminSession]:
    """The live sessions of one admin or of all admins, last used first."""


@count("""
    DELETE FROM admin_sessions
    WHERE admin = $1::text AND ($2::uuid IS NULL OR id = $2::uuid) RETURNING true
    """)
async def end(name: str, session_id: str | None = None) -> int:
    """End the session of an admin with this id, or all of the admin's sessions; return their number."""


@execute("DELETE FROM admin_sessions WHERE digest = $1::bytea")
async def end_by_secret(secret: bytes) -> None:
    """End the session whose cookie has this digest, if there is one."""


@one(
    f"""
    WITH codes AS (DELETE FROM admin_codes WHERE expires_at <= {NOW} RETURNING true),
        sessions AS (DELETE FROM admin_sessions WHERE NOT ({_live(NOW)}) RETURNING true)
    SELECT (SELECT count(*) FROM codes) + (SELECT count(*) FROM sessions)
    """,  # noqa: S608
    row=int,
)
async def prune() -> int:
    """Delete codes and sessions that have expired; return their number."""
