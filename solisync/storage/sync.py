"""What players pushed: one merged document each (contract §7)."""

from dataclasses import dataclass
from datetime import datetime

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from ..rules.leaderboard import Bests
from . import leaderboard
from .accounts import LOCK
from .leaderboard import Standing
from .rows import maybe

PULL = Statement(
    "sync_pull",
    "SELECT payload FROM users LEFT JOIN sync_states ON user_id = id WHERE id = $1::uuid",
)

# A statement of its own, after the lock: only a snapshot taken once the lock is held sees the push that held it before.
LOAD = Statement(
    "sync_load",
    """
    SELECT payload, leaderboard.user_id IS NOT NULL, best_score, best_time_secs
    FROM users
    LEFT JOIN sync_states ON sync_states.user_id = id
    LEFT JOIN leaderboard ON leaderboard.user_id = id
    WHERE id = $1::uuid
    """,
)

SAVE = Statement(
    "sync_save",
    """
    INSERT INTO sync_states (user_id, payload) VALUES ($1::uuid, $2::text)
    ON CONFLICT (user_id) DO UPDATE SET payload = excluded.payload
    """,
)


@dataclass(frozen=True, slots=True)
class Pulled:
    """A player, and what they pushed, if they ever did."""

    payload: str | None


@dataclass(frozen=True, slots=True)
class Saved:
    """What a push is merged into: the document, and how the player stands on the leaderboard."""

    payload: str | None
    standing: Standing


async def pull(transaction: Transaction, user_id: str) -> Pulled | None:
    """What the player pushed; None when there is no such player."""
    return maybe(Pulled, await transaction.run(PULL, user_id))


async def load(transaction: Transaction, user_id: str) -> Saved | None:
    """Lock the player and read what they have; None when they are gone. One round trip of a transaction."""
    rows = await transaction.run_all((LOCK, user_id), (LOAD, user_id))
    return maybe(lambda payload, *standing: Saved(payload, Standing(*standing)), rows)


async def save(transaction: Transaction, user_id: str, payload: str, bests: Bests | None, now: datetime) -> None:
    """Store the merged document, improve the entry with `bests` if there are any, and commit. One round trip."""
    steps = [] if bests is None else [(leaderboard.IMPROVE, user_id, bests.score, bests.seconds, now)]
    await transaction.commit_with((SAVE, user_id, payload), *steps)
