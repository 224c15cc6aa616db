"""Replays, kept as the text that was uploaded, and the list of recent ones: docs/protocol.md "Replays"."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from ..postgres.statement import Statement, Step
from ..postgres.transaction import Transaction
from ..rules.leaderboard import Bests, Standing
from ..rules.replays import RECENT_MAX, Header, Recent
from ..rules.verdicts import VerdictStatus
from .accounts import LOCK
from .leaderboard import improving
from .rows import encoded, maybe

# A statement of its own, after the lock: else two uploads at once could both take the last room. Replays are added up
# only for a player who has not been counted yet; afterwards a trigger keeps the number (migrations/0007).
ROOM = Statement(
    "replay_room",
    """
    WITH counted AS (
        INSERT INTO replay_usage (user_id, used_bytes)
        SELECT id, (SELECT coalesce(sum(replay_charge(size)), 0) FROM replays WHERE user_id = users.id)
        FROM users WHERE id = $1::uuid AND NOT EXISTS (SELECT FROM replay_usage WHERE user_id = $1::uuid)
        RETURNING used_bytes
    )
    SELECT coalesce(usage.used_bytes, counted.used_bytes), leaderboard.user_id IS NOT NULL, best_score, best_time_secs
    FROM users
    LEFT JOIN counted ON true
    LEFT JOIN replay_usage AS usage ON usage.user_id = users.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    WHERE users.id = $1::uuid
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

# The newest are found first, by the index; only then are their players and verdicts looked up. The order begins with
# `unlisted`, which is null in all of them, for the sake of that index (migrations/0010).
RECENT = Statement(
    "recent_replays",
    f"""
    SELECT newest.id, username, seed, draw_mode, mode, time_seconds, final_score, recorded_at, received_at,
        coalesce(status, 'pending')
    FROM (
        SELECT id, user_id, seed, draw_mode, mode, time_seconds, final_score, recorded_at, received_at FROM replays
        WHERE unlisted IS NULL
        ORDER BY unlisted, received_at DESC, id DESC LIMIT {RECENT_MAX}
    ) AS newest JOIN users ON users.id = newest.user_id
    LEFT JOIN verdicts ON verdicts.replay_id = newest.id
    ORDER BY received_at DESC, newest.id DESC
    """,  # noqa: S608
)

FETCH = Statement("fetch_replay", "SELECT body FROM replays WHERE id = $1::uuid")
EXISTS = Statement("replay_exists", "SELECT true FROM replays WHERE id = $1::uuid")

# The players' rows are locked first, as everywhere: a trigger locks each when a replay has been deleted, and would wait
# there for the deletion of an account that waits for this replay.
DELETE = Statement(
    "admin_delete_replays",
    """
    WITH player AS (
        SELECT id FROM users WHERE id IN (SELECT user_id FROM replays WHERE id = ANY ($1::text[]::uuid[]))
        ORDER BY id FOR NO KEY UPDATE
    )
    DELETE FROM replays USING player WHERE user_id = player.id AND replays.id = ANY ($1::text[]::uuid[])
    RETURNING replays.id::text
    """,
    prepared=False,
)


@dataclass(frozen=True, slots=True)
class Room:
    """How many bytes the player has been charged for, and the player's standing on the leaderboard."""

    used_bytes: int
    standing: Standing


async def room(transaction: Transaction, user_id: str) -> Room | None:
    """Lock the player's row and read what an upload needs; None when they are gone. Needs a transaction."""
    rows = await transaction.run_all((LOCK, user_id), (ROOM, user_id))
    return maybe(lambda used, *standing: Room(used, Standing(*standing)), rows)


def storing(
    user_id: str, replay_id: str, body: bytes, header: Header, bests: Bests | None, now: datetime
) -> tuple[Step, ...]:
    """Store a replay, and improve the leaderboard entry by `bests` if there are any. Needs the lock of `room`."""
    seed = None if header.seed is None else str(header.seed)
    shown = (header.mode, header.draw_mode, header.final_score, header.time_seconds, seed, header.recorded_at)
    step = (STORE, replay_id, user_id, now, body.decode(), len(body), *shown)
    return (step, *improving(user_id, bests, now))


async def recent(transaction: Transaction) -> list[Recent]:
    """The newest replays that are listed, the newest first, up to RECENT_MAX."""
    return [Recent(**shown(*row)) for row in await transaction.run(RECENT)]


async def fetch(transaction: Transaction, replay_id: str) -> bytes | None:
    """A replay as it was uploaded."""
    return maybe(encoded, await transaction.run(FETCH, replay_id))


async def exists(transaction: Transaction, replay_id: str) -> bool:
    """Whether there is such a replay."""
    return bool(await transaction.run(EXISTS, replay_id))


async def delete(transaction: Transaction, ids: Sequence[str]) -> set[str]:
    """Delete these replays; returns the ids of those that existed."""
    return {replay_id for (replay_id,) in await transaction.run(DELETE, list(ids))}


def shown(
    replay_id: str,
    username: str,
    seed: str | None,
    draw_mode: str,
    mode: str,
    time_seconds: str,
    final_score: str,
    recorded_at: str,
    received_at: datetime,
    verdict: VerdictStatus,
) -> dict[str, Any]:
    """The fields of Recent."""
    return {
        "id": replay_id,
        "username": username,
        "seed": None if seed is None else int(seed),
        "deal": seed,
        "draw_mode": draw_mode,
        "mode": mode,
        "time_seconds": msgspec.Raw(time_seconds),
        "final_score": msgspec.Raw(final_score),
        "recorded_at": recorded_at,
        "received_at": received_at,
        "verdict": verdict,
    }
