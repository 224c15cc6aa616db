"""Replays, stored as the uploaded text: docs/protocol.md "Replays"."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from msgspec import Raw

from ...postgres.declared import maybe
from ...postgres.statement import Call, Query, Statement
from ...postgres.transaction import Transaction
from ...rules.leaderboard import Bests, Standing
from ...rules.replays import MOMENT_MAX, ReceivedReplay
from ..players.accounts import LOCK, SUSPENDED
from ..players.leaderboard import improving


@dataclass(frozen=True, slots=True)
class Room:
    """The stored replay that an upload repeats, the bytes charged to the player, and the player's standing."""

    repeated_id: str | None
    used_bytes: int
    guest: bool
    standing: Standing


@dataclass(frozen=True, slots=True)
class Held:
    """The result of `hold`: whether it changed anything, and whether the replay is listed now."""

    changed: bool
    listed: bool


# Runs as a separate statement after the lock. Otherwise two uploads at the same time could both take the last room, or
# both be stored as the same game. Nodes of 1.0 stored a repeated upload again, and the oldest copy counts. An aggregate
# finds it: with ORDER BY and LIMIT, the planner might read all replays of the player in order.
ROOM = Query(
    "replay_room",
    """
    SELECT
        (
            SELECT (array_agg(id ORDER BY received_at, id))[1] FROM replays
            WHERE user_id = users.id AND game_digest = $2::bytea
        ) AS repeated_id,
        coalesce(used_bytes, 0) AS used_bytes, guest IS TRUE AS guest,
        leaderboard.visible, best_score, best_time_secs
    FROM users
    LEFT JOIN replay_usage ON replay_usage.user_id = users.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    WHERE users.id = $1::uuid
    """,
    row=lambda repeated_id, used_bytes, guest, visible, best_score, best_time_secs: Room(
        repeated_id, used_bytes, guest, Standing(visible, best_score, best_time_secs)
    ),
)

# The stored columns of a replay, except its size; and the same columns of many replays, as a table.
COLUMNS = "id, user_id, received_at, body, mode, draw_mode, final_score, time_seconds, seed, recorded_at"
SENT = f"""
    unnest(
        $1::text[]::uuid[], $2::text[]::uuid[], $3::text[]::timestamptz[], $4::text[], $5::text[], $6::text[],
        $7::text[], $8::text[], $9::text[], $10::text[]
    ) AS sent ({COLUMNS})
"""

STORE = Statement(
    "store_replay",
    f"""
    INSERT INTO replays (size, game_digest, {COLUMNS})
    VALUES ($1::int, $2::bytea, $3::uuid, $4::uuid, $5::timestamptz, $6::text, $7::text, $8::text, $9::text, $10::text,
        $11::text, $12::text)
    """,  # noqa: S608
)

# Version 1.0.0 stored texts of up to a megabyte. Few of them are left after migrations/0043.
RECORDED_AT = f"""
    CASE WHEN octet_length(recorded_at) <= {MOMENT_MAX} THEN recorded_at ELSE short_time(recorded_at) END
    AS recorded_at"""

IS_LISTED = f"unlisted IS NULL AND NOT {SUSPENDED}"  # to others; `held` means only that its player can't list it

SHOWN = f"username, seed, seed AS deal, draw_mode, mode, time_seconds, final_score, {RECORDED_AT}, received_at"
# Converters for three of these columns, which become fields of Recent.
NUMBERS = {"seed": int, "time_seconds": Raw, "final_score": Raw}


async def room(transaction: Transaction, user_id: str, digest: bytes | None) -> Room | None:
    """Lock the player's row and read what an upload needs; None if the player no longer exists."""
    return await transaction.maybe(ROOM, user_id, digest, first=(LOCK, user_id))


def storing(
    user_id: str, replay_id: str, replay: ReceivedReplay, bests: Bests | None, now: datetime
) -> tuple[Call, ...]:
    """Store a replay, and improve the leaderboard entry by `bests` if given. Needs the lock of `room`."""
    step = (STORE, len(replay.raw), replay.digest, *values(replay_id, user_id, now, replay))
    return (step, *improving(user_id, bests, now))


def sent(replays: Iterable[tuple[str, str, datetime, ReceivedReplay]]) -> Iterator[list[object]]:
    """The parameters of SENT for replays, each given with its id, its player and its time of receipt."""
    rows = (values(id, user_id, received_at.isoformat(), replay) for id, user_id, received_at, replay in replays)
    return map(list, zip(*rows, strict=True))


def values(
    id: str, user_id: str, received_at: object, replay: ReceivedReplay
) -> tuple[str, str, object, str, str, str, str, str, str | None, str]:
    """The values of COLUMNS."""
    body, header, _ = replay
    seed = None if header.seed is None else str(header.seed)
    shown = (header.mode, header.draw_mode, header.final_score, header.time_seconds, seed, header.recorded_at)
    return (id, user_id, received_at, body.decode(), *shown)


@maybe("SELECT body FROM replays WHERE id = $1::uuid", row=str.encode)
async def fetch(replay_id: str) -> bytes | None:
    """The bytes of a replay as uploaded; None if the replay doesn't exist."""


@maybe("SELECT user_id FROM replays WHERE id = $1::uuid", row=str)
async def owner(replay_id: str) -> str | None:
    """The id of the player who uploaded a replay; None if the replay doesn't exist."""


# A replay that is no longer held is listed, unless its player has hidden it. While a replay is held, `unlisted = false`
# means that its player has hidden it.
@maybe(
    """
    WITH changed AS (
        UPDATE replays SET held = nullif($2::boolean, false), unlisted = CASE
            WHEN $2::boolean THEN unlisted IS NULL
            WHEN NOT unlisted THEN true
        END
        WHERE id = $1::uuid AND (held IS NOT NULL) <> $2::boolean
        RETURNING unlisted IS NULL AS listed
    )
    SELECT changed.listed IS NOT NULL AS changed, coalesce(changed.listed, unlisted IS NULL) AS listed
    FROM replays LEFT JOIN changed ON true WHERE id = $1::uuid
    """,
    row=Held,
)
async def hold(replay_id: str, held: bool) -> Held | None:
    """Hold a replay, which unlists it, or release it, which lists it again unless its player has hidden it.

    Needs the lock of the player's row. None if the replay doesn't exist.
    """
