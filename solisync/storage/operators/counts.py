"""Numbers of rows in each table, for commands."""

from dataclasses import dataclass

from ...postgres.declared import one


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The number of rows by kind; `sessions` counts live ones alone, and four fields count replays by verdict."""

    players: int
    guests: int
    sessions: int
    progress: int
    leaderboard_visible: int
    leaderboard_hidden: int
    replays: int
    verified: int
    refuted: int
    undecided: int
    unreadable: int
    avatars: int
    analytics_events: int


@dataclass(frozen=True, slots=True)
class RowEstimates:
    """Estimated rows of some tables; the last two numbers are exact."""

    users: int
    refresh_tokens: int
    replays: int
    verdicts: int
    avatars: int
    analytics_events: int
    suspensions: int
    profile_locks: int
    guests: int


@one("SELECT count(*) FROM users", prepared=False, row=int)
async def players() -> int:
    """The number of players."""


@one(
    """
    WITH checked AS (SELECT status, count(*) AS count FROM verdicts GROUP BY status)
    SELECT (SELECT count(*) FROM users WHERE guest IS NOT TRUE) AS players,
        (SELECT count(*) FROM users WHERE guest) AS guests,
        (SELECT count(*) FROM refresh_tokens WHERE expires_at > clock_timestamp()) AS sessions,
        (SELECT count(*) FROM sync_states) AS progress,
        (SELECT count(*) FROM leaderboard WHERE visible) AS leaderboard_visible,
        (SELECT count(*) FROM leaderboard WHERE NOT visible) AS leaderboard_hidden,
        (SELECT count(*) FROM replays) AS replays,
        coalesce((SELECT count FROM checked WHERE status = 'verified'), 0) AS verified,
        coalesce((SELECT count FROM checked WHERE status = 'refuted'), 0) AS refuted,
        coalesce((SELECT count FROM checked WHERE status = 'undecided'), 0) AS undecided,
        coalesce((SELECT count FROM checked WHERE status = 'unreadable'), 0) AS unreadable,
        (SELECT count(*) FROM avatars) AS avatars,
        (SELECT count(*) FROM analytics_events) AS analytics_events
    """,
    prepared=False,
    row=RowCounts,
)
async def everything() -> RowCounts:
    """The exact number of rows of each kind."""


def _about(table: str) -> str:
    """SQL for the number of rows of a table: the estimate of the last ANALYZE, or the exact number if that is small."""
    return f"""
        (SELECT CASE WHEN reltuples > 10000 THEN reltuples::bigint ELSE (SELECT count(*) FROM {table}) END
        FROM pg_class WHERE oid = '{table}'::regclass) AS {table}
    """  # noqa: S608


@one(
    f"""
    SELECT {_about("users")}, {_about("refresh_tokens")}, {_about("replays")}, {_about("verdicts")},
        {_about("avatars")}, {_about("analytics_events")}, (SELECT count(*) FROM suspensions) AS suspensions,
        (SELECT count(*) FROM profile_locks) AS profile_locks, (SELECT count(*) FROM users WHERE guest) AS guests
    """,  # noqa: S608
    prepared=False,
    row=RowEstimates,
)
async def estimates() -> RowEstimates:
    """Estimates of the numbers of rows, made without reading large tables."""
