"""Row counts per table, for commands."""

from dataclasses import dataclass

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from .rows import one


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of rows by kind; `sessions` are those that have not expired, and four are replays by verdict."""

    players: int
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


PLAYERS = Statement("admin_count_players", "SELECT count(*) FROM users", prepared=False)

EVERYTHING = Statement(
    "admin_counts",
    """
    WITH checked AS (SELECT status, count(*) AS count FROM verdicts GROUP BY status)
    SELECT (SELECT count(*) FROM users),
        (SELECT count(*) FROM refresh_tokens WHERE expires_at > clock_timestamp()),
        (SELECT count(*) FROM sync_states),
        (SELECT count(*) FROM leaderboard WHERE visible),
        (SELECT count(*) FROM leaderboard WHERE NOT visible),
        (SELECT count(*) FROM replays),
        coalesce((SELECT count FROM checked WHERE status = 'verified'), 0),
        coalesce((SELECT count FROM checked WHERE status = 'refuted'), 0),
        coalesce((SELECT count FROM checked WHERE status = 'undecided'), 0),
        coalesce((SELECT count FROM checked WHERE status = 'unreadable'), 0),
        (SELECT count(*) FROM avatars),
        (SELECT count(*) FROM analytics_events)
    """,
    prepared=False,
)


async def players(transaction: Transaction) -> int:
    """The number of players."""
    return one(int, await transaction.run(PLAYERS))


async def everything(transaction: Transaction) -> Counts:
    """The number of rows of every kind."""
    return one(Counts, await transaction.run(EVERYTHING))
