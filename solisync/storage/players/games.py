"""Games that players have sent by their ids, of which each counts once: docs/sync.md."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from ...postgres.declared import many, one
from ...postgres.statement import Call, Query, Statement
from ...postgres.transaction import Transaction
from ...rules.counting import GameCounts
from ...rules.export import ExportedGame
from ...rules.games import KEPT, KEPT_OF_GUEST, ReceivedGame, Share
from ..rate_limits import Hit, counting
from ..rows import converted, nested
from .accounts import LOCK
from .sync import OF_PLAYER, SAVED, Saved, saved_from

_encode = msgspec.json.Encoder().encode

MOST_NEW = 10_000  # games of a player in any 24 hours
I64_MAX = 2**63 - 1


class Memory(NamedTuple):
    """What a request needs to know of the games before it.

    `wait` has the seconds until the rate limit admits a request, and `full_for` those until there is room for new
    games; each is None if there is room now. `known` are the ids of the request that were counted before, `latest` is
    the end of the latest game, and `spare` the number of games to forget none of. Games that ended no later than
    `forgotten_until` may have been counted. `win_seconds` is the time of all wins, if it was kept.
    """

    wait: float | None
    full_for: float | None
    now: datetime
    known: frozenset[str]
    latest: datetime | None
    spare: int
    forgotten_until: datetime | None
    win_seconds: int | None

    def has(self, game: ReceivedGame) -> bool:
        """Return whether a game of the request was counted, or may have been."""
        return game.game_id in self.known or (
            self.forgotten_until is not None and game.ended_at <= self.forgotten_until
        )


# Ids come as one text, and games as JSON, because the driver would quote each value of a list by itself.

# Counts the request, and reads what sync.LOAD reads.
LOAD = Query(
    "games_load",
    f"""
    WITH hit AS ({counting("$4", "$5", "$6")} AS wait)
    SELECT {SAVED}, hit.wait, (
            SELECT extract(epoch FROM counted_at + interval '24 hours' - now)::float8 FROM games
            WHERE user_id = $1::uuid AND counted_at > now - interval '24 hours' AND counted_at <= now
            ORDER BY counted_at DESC
            OFFSET greatest({MOST_NEW} - cardinality($3::uuid[]) + cardinality(ids), 0) LIMIT 1
        ) AS full_for, now, ids AS known,
        (SELECT ended_at FROM games WHERE user_id = $1::uuid ORDER BY ended_at DESC LIMIT 1) AS latest,
        CASE WHEN guest THEN {KEPT_OF_GUEST} ELSE {KEPT} END - coalesce(memory.games, 0) AS spare, forgotten_until,
        win_seconds
    {OF_PLAYER}
    LEFT JOIN game_memory AS memory ON memory.user_id = id
    CROSS JOIN hit
    CROSS JOIN clock_timestamp() AS now
    CROSS JOIN LATERAL (
        SELECT ARRAY(
            SELECT game_id::text FROM games WHERE user_id = $1::uuid AND game_id = ANY ($3::uuid[])
        ) AS ids
    ) AS counted
    WHERE id = $1::uuid
    """,  # noqa: S608
    row=nested(lambda saved, memory: (saved, memory), saved_from, converted(Memory, known=frozenset)),
)

KNOWN = Query(
    "games_known",
    f"""
    SELECT ARRAY(
            SELECT game_id::text FROM games WHERE user_id = $1::uuid AND game_id = ANY ($2::uuid[])
        ) AS known,
        CASE WHEN guest THEN {KEPT_OF_GUEST} ELSE {KEPT} END - coalesce(games, 0) AS spare, forgotten_until
    FROM users LEFT JOIN game_memory ON user_id = id WHERE id = $1::uuid
    """,  # noqa: S608
    row=lambda known, spare, forgotten_until: (frozenset(known), spare, forgotten_until),
    prepared=False,
)

ADD = Statement(
    "games_add",
    """
    WITH added AS (
        INSERT INTO games (user_id, game_id, ended_at, mode, draw_mode, won, score, seconds, xp)
        SELECT $1::uuid, (game->>0)::uuid, (game->>6)::timestamptz, game->>1, game->>2, (game->>3)::boolean,
            (game->>4)::int, (game->>5)::int, (game->>7)::int
        FROM json_array_elements($2::text::json) AS game
        RETURNING true
    )
    INSERT INTO game_memory AS memory (user_id, games, win_seconds) SELECT $1::uuid, count(*), $3::bigint FROM added
    ON CONFLICT (user_id) DO UPDATE SET games = memory.games + excluded.games, win_seconds = excluded.win_seconds
    """,
)

FORGET = Statement(
    "games_forget",
    """
    WITH gone AS (
        DELETE FROM games WHERE user_id = $1::uuid AND game_id = ANY (ARRAY(
            SELECT game_id FROM games WHERE user_id = $1::uuid ORDER BY ended_at, game_id LIMIT $2::int
        )) RETURNING ended_at
    )
    UPDATE game_memory SET games = games - (SELECT count(*) FROM gone),
        forgotten_until = greatest(forgotten_until, (SELECT max(ended_at) FROM gone))
    WHERE user_id = $1::uuid
    """,
)


async def load(
    transaction: Transaction, user_id: str, expiry: int, ids: Iterable[str], request: Hit
) -> tuple[Saved, Memory] | None:
    """Lock the player's row, count the request, and read what games need; None if the player no longer exists."""
    return await transaction.maybe(LOAD, user_id, expiry, _array(ids), *request, first=(LOCK, user_id))


@many(
    """
    SELECT game_id, ended_at, mode, draw_mode, won, score, seconds, xp, counted_at FROM games
    WHERE (user_id, counted_at, game_id) < ($1::uuid, $2::timestamptz, $3::uuid) AND user_id >= $1::uuid
    ORDER BY user_id DESC, counted_at DESC, game_id DESC LIMIT $4::int
    """,
    prepared=False,
    row=ExportedGame,
)
async def counted(user_id: str, before: datetime, before_id: str, most: int) -> list[ExportedGame]:
    """Up to `most` games of a player that were counted before a position, latest first."""


async def missing(transaction: Transaction, user_id: str, shares: Sequence[Share]) -> tuple[list[Share], int]:
    """The games that were never counted, each once, and the number of games to forget none of.

    Needs the player's lock.
    """
    given = {share.game.game_id: share for share in shares}
    known, spare, forgotten_until = await transaction.one(KNOWN, user_id, _array(given))
    new = [share for game_id, share in given.items() if game_id not in known]
    return [share for share in new if forgotten_until is None or share.game.ended_at > forgotten_until], spare


def adding(user_id: str, shares: Sequence[Share], spare: int, win_seconds: int | None = None) -> tuple[Call, ...]:
    """Remember new games and the time of all wins, and forget the earliest games if there are more than `spare`.

    Needs the lock of `load`.
    """
    if not shares:
        return ()
    # in UTC, because PostgreSQL refuses offsets of 16 hours and more
    rows = [(*game[:6], game.ended_at.astimezone(UTC), xp) for game, xp in shares]
    add = (ADD, user_id, _encode(rows).decode(), None if win_seconds is None else min(win_seconds, I64_MAX))
    return (add,) if len(rows) <= spare else (add, (FORGET, user_id, len(rows) - spare))


def _array(ids: Iterable[str]) -> str:
    """Canonical UUIDs as an array, which the driver need not quote one by one."""
    return f"{{{','.join(ids)}}}"


@one(
    """
    SELECT count(*) AS games_played, count(*) FILTER (WHERE won) AS games_won,
        coalesce(sum(score) FILTER (WHERE won), 0)::bigint AS lifetime_score, coalesce(sum(xp), 0)::bigint AS total_xp,
        count(*) FILTER (WHERE won AND draw_mode = 'DrawOne') AS draw_one_wins,
        count(*) FILTER (WHERE won AND draw_mode = 'DrawThree') AS draw_three_wins,
        coalesce(sum(seconds) FILTER (WHERE won), 0)::bigint AS time
    FROM games AS theirs WHERE user_id = $2::uuid AND EXISTS (
        SELECT FROM games AS own WHERE own.user_id = $1::uuid AND own.game_id = theirs.game_id
    )
    """,
    row=GameCounts,
)
async def shared(player: str, guest: str) -> GameCounts:
    """The counts that a guest has from games that the player has too."""
