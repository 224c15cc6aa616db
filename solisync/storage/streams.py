"""Data that streams of events begin with and are compared with, and the bus's messages: docs/live.md."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..postgres.declared import maybe
from ..postgres.statement import Query, Statement
from ..postgres.transaction import Statements
from ..rules.events import EndReason
from .players.sessions import NAMED

CHANNEL = "solisync"
"""The channel of LISTEN and NOTIFY."""


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The session that an access token names, None if it isn't live, and the revision of the stored progress."""

    session_id: str | None
    revision: str | None


# Computes the same value as solisync.rules.documents.revision.
_REVISION = "left(encode(sha256(convert_to(payload, 'UTF8')), 'hex'), 32)"

ENDED = Query(
    "ended_sessions",
    """
    SELECT stream.session_id::text AS session_id, CASE
        WHEN users.id IS NULL THEN 'account_deleted' WHEN suspensions.user_id IS NULL THEN 'session_ended'
        ELSE 'suspended'
    END AS reason
    FROM unnest($1::text[]::uuid[], $2::text[]::uuid[]) AS stream (player_id, session_id)
    LEFT JOIN users ON users.id = stream.player_id
    LEFT JOIN suspensions ON suspensions.user_id = stream.player_id
    WHERE suspensions.user_id IS NOT NULL OR NOT EXISTS (
        SELECT FROM refresh_tokens AS live
        WHERE live.user_id = stream.player_id AND live.session_id = stream.session_id
            AND expires_at > clock_timestamp()
    )
    """,
    row=lambda session_id, reason: (session_id, reason),
)

REVISIONS = Query(
    "revisions_of_progress",
    f"""
    SELECT user_id::text AS player, {_REVISION} AS revision FROM sync_states
    WHERE user_id = ANY ($1::text[]::uuid[])
    """,  # noqa: S608
    row=lambda player, revision: (player, revision),
)

# A transaction with a NOTIFY holds a lock of the whole database until its commit ends, so this commit doesn't wait for
# the disk.
NOTIFY = Statement(
    "notify",
    f"""
    SELECT pg_notify('{CHANNEL}', message)
    FROM set_config('synchronous_commit', 'off', true), unnest($1::text[]) AS message
    """,  # noqa: S608
    prepared=False,
)


@maybe(
    f"""
    SELECT (
        SELECT session_id::text FROM refresh_tokens WHERE user_id = users.id AND {NAMED}
    ) AS session_id, {_REVISION} AS revision
    FROM users LEFT JOIN sync_states ON user_id = id WHERE id = $1::uuid
    """,  # noqa: S608
    row=StreamStart,
)
async def start(user_id: str, expiry: int) -> StreamStart | None:
    """The data that a stream begins with; None if the player doesn't exist."""


async def ended(statements: Statements, sessions: Sequence[tuple[str, str]]) -> dict[str, EndReason]:
    """The ended sessions among these pairs of a player and a session, and the reasons why their streams end."""
    players, ids = zip(*sessions, strict=True)
    return dict(await statements.many(ENDED, [*players], [*ids]))


async def revisions(statements: Statements, players: Sequence[str]) -> dict[str, str]:
    """The revisions of these players' progress, without the players who have never pushed."""
    return dict(await statements.many(REVISIONS, [*players]))


async def notify(statements: Statements, messages: Sequence[str]) -> None:
    """Send these messages to all processes that listen."""
    await statements.run((NOTIFY, [*messages]))
