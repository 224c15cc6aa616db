"""Boards of verified replays, which triggers keep (migrations/0014): docs/verification.md "Boards"."""

from datetime import UTC, date, datetime
from typing import NamedTuple

import msgspec

from ..klondike import PREFERRED
from ..postgres.statement import Row, Statement
from ..postgres.transaction import Statements
from ..rules.boards import LIMIT_MAX, NEIGHBOURS, RANKS, BoardEntry, BoardPage, Place, Window
from .rows import maybe

FIRST = Place(-(2**31) + 1, datetime(1, 1, 2, tzinfo=UTC), "00000000-0000-0000-0000-000000000000")


class Verified(NamedTuple):
    """A verified replay, in the order of the engines that verified them."""

    engine: int = 0
    replay_id: str = "00000000-0000-0000-0000-000000000000"


_SHOWN = """
    SELECT deficit, entry.received_at, entry.replay_id, display_name, time_seconds, moves, undos, mode, draw_mode, seed,
        entry.user_id = $2::uuid, ahead
"""
_JOINED = """
    JOIN leaderboard ON leaderboard.user_id = entry.user_id AND visible
    JOIN replays ON replays.id = entry.replay_id
    JOIN verdicts ON verdicts.replay_id = entry.replay_id
    ORDER BY deficit, entry.received_at, entry.replay_id
"""

# How many are ahead is counted in the index, to the last rank that is told and no further: for the order, which a count
# does not need, the planner reads no more of the index than that, and no table.
# The longest page is a limit of its own, because for a limit that is a parameter the planner of a prepared statement
# expects a tenth of all rows, and would read the whole leaderboard to join them.
PAGE = Statement(
    "board_page",
    f"""
    {_SHOWN}
    FROM (
        SELECT * FROM (
            SELECT deficit, received_at, replay_id, user_id FROM board_evidence
            WHERE board = $1::text AND ranked
                AND (deficit, received_at, replay_id) > ($3::int, $4::timestamptz, $5::uuid)
            ORDER BY deficit, received_at, replay_id LIMIT {LIMIT_MAX + 1}
        ) AS longest ORDER BY deficit, received_at, replay_id LIMIT $6::int
    ) AS entry CROSS JOIN (
        SELECT count(*) AS ahead FROM (
            SELECT FROM board_evidence
            WHERE board = $1::text AND ranked
                AND (deficit, received_at, replay_id) <= ($3::int, $4::timestamptz, $5::uuid)
            ORDER BY deficit, received_at, replay_id LIMIT {RANKS}
        ) AS counted
    ) AS places
    {_JOINED}
    """,  # noqa: S608
)

AROUND = Statement(
    "board_around",
    f"""
    WITH mine AS (
        SELECT deficit, received_at, replay_id, user_id FROM board_evidence
        WHERE board = $1::text AND user_id = $2::uuid AND ranked
    ), before AS (
        SELECT other.deficit, other.received_at, other.replay_id, other.user_id FROM mine CROSS JOIN LATERAL (
            SELECT deficit, received_at, replay_id, user_id FROM board_evidence
            WHERE board = $1::text AND ranked
                AND (deficit, received_at, replay_id) < (mine.deficit, mine.received_at, mine.replay_id)
            ORDER BY deficit DESC, received_at DESC, replay_id DESC LIMIT {NEIGHBOURS}
        ) AS other
    ), after AS (
        SELECT other.deficit, other.received_at, other.replay_id, other.user_id FROM mine CROSS JOIN LATERAL (
            SELECT deficit, received_at, replay_id, user_id FROM board_evidence
            WHERE board = $1::text AND ranked
                AND (deficit, received_at, replay_id) > (mine.deficit, mine.received_at, mine.replay_id)
            ORDER BY deficit, received_at, replay_id LIMIT {NEIGHBOURS}
        ) AS other
    ), places AS (
        SELECT count(*) - (SELECT count(*) FROM before) AS ahead FROM mine CROSS JOIN LATERAL (
            SELECT FROM board_evidence
            WHERE board = $1::text AND ranked
                AND (deficit, received_at, replay_id) < (mine.deficit, mine.received_at, mine.replay_id)
            ORDER BY deficit, received_at, replay_id LIMIT {RANKS} + (SELECT count(*) FROM before)
        ) AS counted
    )
    {_SHOWN}
    FROM (SELECT * FROM before UNION ALL SELECT * FROM mine UNION ALL SELECT * FROM after) AS entry CROSS JOIN places
    {_JOINED}
    """,  # noqa: S608
)

# What an older engine verified under an older ruleset, from a place on. It has evidence if it was verified before
# migrations/0017; that of a newer engine never has.
OLDER = Statement(
    "verdicts_of_older_rulesets",
    f"""
    SELECT engine, replay_id::text, (
        SELECT user_id::text FROM board_evidence WHERE board_evidence.replay_id = verdicts.replay_id LIMIT 1
    )
    FROM verdicts
    WHERE ruleset <> '{PREFERRED.name}' AND engine < $1::int AND (engine, replay_id) > ($2::int, $3::uuid)
    ORDER BY engine, replay_id LIMIT $4::int
    """,  # noqa: S608
)

# One player's, whose row the function locks.
PLACE = Statement("place_replays", "SELECT place_replay(id, $1::uuid) FROM unnest($2::text[]::uuid[]) AS id")

BEGUN = Statement("day_has_begun", "SELECT $1::date <= (clock_timestamp() AT TIME ZONE 'UTC')::date")


async def show(statements: Statements, board: str, player: str, window: Window) -> BoardPage:
    """A part of a board; empty where the player has no place to look around from."""
    if window.around_me:
        rows = await statements.run(AROUND, board, player)
        return BoardPage([_entry(number, row) for number, row in enumerate(rows, 1)], None)
    rows = await statements.run(PAGE, board, player, *(window.after or FIRST), window.limit + 1)
    entries = [_entry(number, row) for number, row in enumerate(rows[: window.limit], 1)]
    if len(rows) <= window.limit:
        return BoardPage(entries, None)
    last = entries[-1]
    return BoardPage(entries, Place(-last.score, last.received_at, last.replay_id).text)


async def older_evidence(
    statements: Statements, after: Verified, *, engine: int, most: int
) -> tuple[dict[str, list[str]], Verified | None]:
    """The next `most` replays that an engine older than this has verified under an older ruleset.

    Those of them that are evidence, by player, and the last of them all; None at the end.
    """
    rows = await statements.run(OLDER, engine, *after, most)
    found: dict[str, list[str]] = {}
    for _, replay_id, player in rows:
        if player is not None:
            found.setdefault(player, []).append(replay_id)
    return found, Verified(*rows[-1][:2]) if rows else None


async def place(statements: Statements, player: str, replay_ids: list[str]) -> None:
    """Bring the evidence of some replays of a player up to their verdicts."""
    await statements.run(PLACE, player, replay_ids)


async def has_begun(statements: Statements, day: date) -> bool:
    """Whether it is this day yet, in UTC, or later."""
    return maybe(bool, await statements.run(BEGUN, day)) or False


def _entry(number: int, row: Row) -> BoardEntry:
    deficit, received_at, replay_id, display_name, seconds, moves, undos, mode, draw_mode, seed, own, ahead = row
    rank = ahead + number
    return BoardEntry(
        rank=rank if rank <= RANKS else None,
        display_name=display_name,
        score=-deficit,
        time_seconds=msgspec.Raw(seconds),
        moves=moves,
        undos=undos,
        mode=mode,
        draw_mode=draw_mode,
        deal=seed,
        replay_id=replay_id,
        received_at=received_at,
        own=own,
    )
