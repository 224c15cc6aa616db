"""Replays, to the byte, and the list of recent ones (contract §6)."""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from ..rules.leaderboard import Bests
from ..rules.replays import RECENT_MAX, Header, Recent
from .accounts import LOCK
from .leaderboard import IMPROVE, Standing
from .rows import many, maybe

# After the lock, in a statement of its own: so two uploads at once can't both take the last room.
ROOM = Statement(
    "replay_room",
    """
    SELECT (SELECT coalesce(sum(size), 0)::bigint FROM replays WHERE user_id = $1::uuid),
        leaderboard.user_id IS NOT NULL, best_score, best_time_secs
    FROM users LEFT JOIN leaderboard ON leaderboard.user_id = id
    WHERE id = $1::uuid
    """,
)

STORE = Statement(
    "store_replay",
    """
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, seed, recorded_at)
    VALUES ($1::uuid, $2::uuid, $3::timestamptz, $4::text, $5::int, $6::text, $7::text, $8::text, $9::text, $10::text,
        $11::text)
    """,
)

# The newest are found first, by the index; only then are their players looked up.
RECENT = Statement(
    "recent_replays",
    f"""
    SELECT newest.id, username, seed, draw_mode, mode, time_seconds, final_score, recorded_at, received_at
    FROM (
        SELECT id, user_id, seed, draw_mode, mode, time_seconds, final_score, recorded_at, received_at FROM replays
        ORDER BY received_at DESC, id DESC LIMIT {RECENT_MAX}
    ) AS newest JOIN users ON users.id = newest.user_id
    ORDER BY received_at DESC, newest.id DESC
    """,  # noqa: S608
)

FETCH = Statement("fetch_replay", "SELECT body FROM replays WHERE id = $1::uuid")
EXISTS = Statement("replay_exists", "SELECT true FROM replays WHERE id = $1::uuid")


@dataclass(frozen=True, slots=True)
class Room:
    """What an account's replays take, in bytes, and how the player stands on the leaderboard."""

    used_bytes: int
    standing: Standing


async def room(transaction: Transaction, user_id: str) -> Room | None:
    """Lock the player and see what they have; None when they are gone. One round trip of a transaction."""
    rows = await transaction.run_all((LOCK, user_id), (ROOM, user_id))
    return maybe(lambda used, *standing: Room(used, Standing(*standing)), rows)


async def store(
    transaction: Transaction,
    user_id: str,
    replay_id: str,
    body: str,
    size: int,
    header: Header,
    bests: Bests | None,
    now: datetime,
) -> None:
    """Store a replay of `size` bytes, improve the leaderboard entry with `bests` if there are any, and commit."""
    seed = None if header.seed is None else str(header.seed)
    shown = (header.mode, header.draw_mode, header.final_score, header.time_seconds, seed, header.recorded_at)
    steps = [] if bests is None else [(IMPROVE, user_id, bests.score, bests.seconds, now)]
    await transaction.commit_with((STORE, replay_id, user_id, now, body, size, *shown), *steps)


async def recent(transaction: Transaction) -> list[Recent]:
    """The newest replays, the newest first, up to RECENT_MAX."""
    return many(_recent, await transaction.run(RECENT))


async def fetch(transaction: Transaction, replay_id: str) -> str | None:
    """A replay as it was uploaded."""
    return maybe(str, await transaction.run(FETCH, replay_id))


async def exists(transaction: Transaction, replay_id: str) -> bool:
    """Whether there is such a replay."""
    return bool(await transaction.run(EXISTS, replay_id))


def _recent(
    replay_id: str,
    username: str,
    seed: str | None,
    draw_mode: str,
    mode: str,
    time_seconds: str,
    final_score: str,
    recorded_at: str,
    received_at: datetime,
) -> Recent:
    return Recent(
        id=replay_id,
        username=username,
        seed=None if seed is None else int(seed),
        draw_mode=draw_mode,
        mode=mode,
        time_seconds=msgspec.Raw(time_seconds),
        final_score=msgspec.Raw(final_score),
        recorded_at=recorded_at,
        received_at=received_at,
    )
