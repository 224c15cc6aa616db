"""Replays, kept as the text that was uploaded, and the list of recent ones: docs/protocol.md "Replays"."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from msgspec import Raw

from ..postgres.declared import found, maybe
from ..postgres.statement import Call, Query, Statement
from ..postgres.transaction import Statements, Transaction
from ..rules.leaderboard import Bests, Standing
from ..rules.replay_lists import RECENT_MAX, VERIFIED_AMONG, Recent
from ..rules.replays import MOMENT_MAX, ReceivedReplay
from .accounts import LOCK
from .leaderboard import improving
from .rows import converted


@dataclass(frozen=True, slots=True)
class Room:
    """The stored replay that an upload repeats, the bytes that the player is charged for, and the player's standing."""

    repeated_id: str | None
    used_bytes: int
    guest: bool
    standing: Standing


@dataclass(frozen=True, slots=True)
class Held:
    """Whether holding a replay, or no longer, has changed anything, and whether it is listed now."""

    changed: bool
    listed: bool


# A statement of its own, after the lock: else two uploads at once could both take the last room, or both be stored as
# one game's. Replays are added up only for a player who has not been counted yet; afterwards a trigger keeps the number
# Older nodes store a repeated upload again; the oldest of them counts. It is found by an aggregate:
# with ORDER BY and LIMIT, the planner might look for it in the order of all replays of the player.
ROOM = Query(
    "replay_room",
    """
    WITH counted AS (
        INSERT INTO replay_usage (user_id, used_bytes)
        SELECT id, (SELECT coalesce(sum(replay_charge(size)), 0) FROM replays WHERE user_id = users.id)
        FROM users WHERE id = $1::uuid AND NOT EXISTS (SELECT FROM replay_usage WHERE user_id = $1::uuid)
        RETURNING used_bytes
    )
    SELECT
        (
            SELECT (array_agg(id ORDER BY received_at, id))[1] FROM replays
            WHERE user_id = users.id AND game_digest = $2::bytea
        ) AS repeated_id,
        coalesce(usage.used_bytes, counted.used_bytes) AS used_bytes, guest IS TRUE AS guest,
        leaderboard.visible, best_score, best_time_secs
    FROM users
    LEFT JOIN counted ON true
    LEFT JOIN replay_usage AS usage ON usage.user_id = users.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    WHERE users.id = $1::uuid
    """,
    row=lambda repeated_id, used_bytes, guest, visible, best_score, best_time_secs: Room(
        repeated_id, used_bytes, guest, Standing(visible, best_score, best_time_secs)
    ),
)

# What is stored of every replay, beside its size; and the same of many, as a table.
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

# Version 1.0.0 stored texts of up to a megabyte. Few are left after migrations/0043.
RECORDED_AT = f"""
    CASE WHEN octet_length(recorded_at) <= {MOMENT_MAX} THEN recorded_at ELSE short_time(recorded_at) END
    AS recorded_at"""

SHOWN = f"username, seed, seed AS deal, draw_mode, mode, time_seconds, final_score, {RECORDED_AT}, received_at"
# How three of these become fields of Recent.
NUMBERS = {"seed": int, "time_seconds": Raw, "final_score": Raw}


def _newest(count: int) -> str:
    """SQL for the newest listed replays of players who are not suspended, by their keys in a table of these.

    Only if that table has too few, older replays are read too (migrations/0042), in the order of their index, which
    begins with `unlisted`. Suspended players are excluded by a subquery: for a join the planner might give up that
    order, and it takes `IS NULL` to be rare. The number of older replays is a limit of its own, around a constant one,
    because for a limit that is an expression the planner expects a tenth of all rows.
    """
    return f"""
        WITH shown AS (
            SELECT received_at, id FROM public_replays ORDER BY received_at DESC, id DESC LIMIT {count}
        ), older AS (
            SELECT received_at, id FROM replays
            WHERE unlisted IS NULL AND received_at < (SELECT since FROM public_replays_begin)
                AND NOT (SELECT EXISTS (SELECT FROM suspensions WHERE suspensions.user_id = replays.user_id))
            ORDER BY unlisted, received_at DESC, id DESC LIMIT {count}
        )
        SELECT received_at, id FROM (
            SELECT received_at, id FROM shown
            UNION ALL
            (SELECT received_at, id FROM older LIMIT {count} - (SELECT count(*) FROM shown))
        ) AS newest ORDER BY received_at DESC, id DESC OFFSET 0
    """  # noqa: S608


# One by one, by their keys: a subquery with a LIMIT is joined in no other way.
_LOOKED_UP = """
    CROSS JOIN LATERAL (
        SELECT user_id, seed, draw_mode, mode, time_seconds, final_score, recorded_at FROM replays
        WHERE id = {}.id LIMIT 1
    ) AS replay JOIN users ON users.id = user_id
"""

# The newest are found first, by the index; only then are they, their players and verdicts looked up.
RECENT = Query(
    "recent_replays",
    f"""
    SELECT newest.id, {SHOWN}, coalesce(status, 'pending') AS verdict
    FROM ({_newest(RECENT_MAX)}) AS newest {_LOOKED_UP.format("newest")}
    LEFT JOIN verdicts ON verdicts.replay_id = newest.id
    ORDER BY received_at DESC, newest.id DESC
    """,  # noqa: S608
    row=converted(Recent, **NUMBERS),
)

# In the same order, so that reading ends as soon as enough are verified. The status is no join, for which the planner
# may read all verdicts into a hash table.
VERIFIED = Query(
    "recent_verified_replays",
    f"""
    SELECT verified.id, {SHOWN}, 'verified' AS verdict
    FROM (
        SELECT received_at, id FROM ({_newest(VERIFIED_AMONG)}) AS newest
        WHERE (SELECT status FROM verdicts WHERE replay_id = newest.id) = 'verified'
        ORDER BY received_at DESC, id DESC LIMIT {RECENT_MAX}
    ) AS verified {_LOOKED_UP.format("verified")}
    ORDER BY received_at DESC, verified.id DESC
    """,  # noqa: S608
    row=converted(Recent, **NUMBERS),
)


async def room(transaction: Transaction, user_id: str, digest: bytes | None) -> Room | None:
    """Lock the player's row and read what an upload needs; None when they are gone."""
    return await transaction.maybe(ROOM, user_id, digest, first=(LOCK, user_id))


def storing(
    user_id: str, replay_id: str, replay: ReceivedReplay, bests: Bests | None, now: datetime
) -> tuple[Call, ...]:
    """Store a replay, and improve the leaderboard entry by `bests` if there are any. Needs the lock of `room`."""
    step = (STORE, len(replay.raw), replay.digest, *_values(replay_id, user_id, now, replay))
    return (step, *improving(user_id, bests, now))


def sent(replays: Iterable[tuple[str, str, datetime, ReceivedReplay]]) -> Iterator[list[object]]:
    """The parameters of SENT, for one replay or more: each with its id, its player and when it was received."""
    rows = (_values(id, user_id, received_at.isoformat(), replay) for id, user_id, received_at, replay in replays)
    return map(list, zip(*rows, strict=True))


def _values(
    id: str, user_id: str, received_at: object, replay: ReceivedReplay
) -> tuple[str, str, object, str, str, str, str, str, str | None, str]:
    """The values of COLUMNS."""
    body, header, _ = replay
    seed = None if header.seed is None else str(header.seed)
    shown = (header.mode, header.draw_mode, header.final_score, header.time_seconds, seed, header.recorded_at)
    return (id, user_id, received_at, body.decode(), *shown)


async def recent(statements: Statements, verified: bool) -> list[Recent]:
    """The newest replays that are listed, the newest first, up to RECENT_MAX; if so, of the `verified` ones."""
    query = VERIFIED if verified else RECENT
    return await statements.many(query)


@maybe("SELECT body FROM replays WHERE id = $1::uuid", row=str.encode)
async def fetch(replay_id: str) -> bytes | None:
    """A replay as it was uploaded."""


@found("SELECT true FROM replays WHERE id = $1::uuid")
async def exists(replay_id: str) -> bool:
    """Whether there is such a replay."""


@maybe("SELECT user_id FROM replays WHERE id = $1::uuid", row=str)
async def owner(replay_id: str) -> str | None:
    """The id of the player who uploaded a replay; None when there is no such replay."""


# What is no longer held is listed, unless its player has hidden it, which is false in `unlisted` while it is held.
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
    """Take a replay off the lists for as long as it is `held`, or list it again unless its player has hidden it.

    Needs a lock of the player's row. None when there is no such replay.
    """
