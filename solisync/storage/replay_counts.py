"""Counting the replays of players whom no upload has counted yet, for the lists of players (migrations/0048)."""

from typing import NamedTuple

from ..postgres.declared import execute, many, one
from ..postgres.transaction import Transaction


class PlayersPage(NamedTuple):
    """A page of players with replays, in the order of their ids: the last of them, and those without a count."""

    last: str | None
    uncounted: list[str]


@one(
    """
    WITH page AS MATERIALIZED (
        SELECT DISTINCT user_id FROM replays WHERE user_id > $1::uuid ORDER BY user_id LIMIT $2::int
    )
    SELECT (SELECT user_id::text FROM page ORDER BY user_id DESC LIMIT 1) AS last, ARRAY(
        SELECT user_id::text FROM page WHERE NOT EXISTS (
            SELECT FROM replay_usage WHERE replay_usage.user_id = page.user_id AND replays IS NOT NULL
        )
    ) AS uncounted
    """,
    row=PlayersPage,
)
async def page(after: str, most: int) -> PlayersPage:
    """Up to `most` players with replays after the id `after`."""


@many("SELECT id FROM users WHERE id = ANY ($1::text[]::uuid[]) ORDER BY id FOR NO KEY UPDATE", row=str)
async def _lock(ids: list[str]) -> list[str]:
    """Lock the rows of these players, as an upload does; return the ids of those who still exist."""


@execute("""
    INSERT INTO replay_usage (user_id, used_bytes, replays)
    SELECT user_id, sum(replay_charge(size)), count(*) FROM replays WHERE user_id = ANY ($1::text[]::uuid[])
    GROUP BY user_id ORDER BY user_id
    ON CONFLICT (user_id) DO UPDATE SET replays = excluded.replays
    """)
async def _count(ids: list[str]) -> None:
    """Count the replays of these players. A separate statement, so that it sees what an upload before it stored."""


async def count(transaction: Transaction, ids: list[str]) -> None:
    """Store the number of replays of these players."""
    await _count(transaction, await _lock(transaction, ids))
