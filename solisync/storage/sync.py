"""Progress that players pushed, one merged JSON document each: docs/sync.md."""

from dataclasses import dataclass
from datetime import datetime

from ..postgres.statement import Statement, Step
from ..postgres.transaction import Transaction
from ..rules.leaderboard import Bests, Standing
from .accounts import LOCK
from .leaderboard import improving
from .rows import encoded, maybe

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

# LOAD runs as EXECUTE, whose snapshot is older than the lock of the table that it waits for. When an ALTER TABLE had
# that lock and rewrote the table, LOAD finds no document where there is one. The first push of a player therefore
# inserts and never overwrites: `exactly_one` (migrations/0006) aborts the transaction, and the next attempt finds it.
SAVE_FIRST = Statement(
    "sync_save_first",
    """
    WITH saved AS (
        INSERT INTO sync_states (user_id, payload) VALUES ($1::uuid, $2::text)
        ON CONFLICT (user_id) DO NOTHING
        RETURNING true
    )
    SELECT exactly_one(count(*)) FROM saved
    """,
)

SAVE = Statement(
    "sync_save",
    """
    WITH saved AS (UPDATE sync_states SET payload = $2::text WHERE user_id = $1::uuid RETURNING true)
    SELECT exactly_one(count(*)) FROM saved
    """,
)


@dataclass(frozen=True, slots=True)
class Pulled:
    """A player's document; None if they never pushed."""

    payload: bytes | None


@dataclass(frozen=True, slots=True)
class Saved:
    """The document into which a push is merged, if there is one, and the player's standing on the leaderboard."""

    payload: bytes | None
    standing: Standing


async def pull(transaction: Transaction, user_id: str) -> Pulled | None:
    """The player's document; None when there is no such player."""
    return maybe(lambda payload: Pulled(encoded(payload)), await transaction.run(PULL, user_id))


async def load(transaction: Transaction, user_id: str) -> Saved | None:
    """Lock the player's row and read what a push needs; None when they are gone. Needs a transaction."""
    rows = await transaction.run_all((LOCK, user_id), (LOAD, user_id))
    return maybe(lambda payload, *standing: Saved(encoded(payload), Standing(*standing)), rows)


def saving(user_id: str, payload: bytes, bests: Bests | None, now: datetime, *, first: bool) -> tuple[Step, ...]:
    """Store the merged document, and improve the leaderboard entry by `bests` if any. Needs the lock of `load`.

    `first`: whether `load` found no document. The steps fail with TransactionAborted when that is not so.
    """
    return ((SAVE_FIRST if first else SAVE, user_id, payload.decode()), *improving(user_id, bests, now))
