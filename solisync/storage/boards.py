"""Boards of verified replays, which triggers keep (migrations/0014): docs/verification.md "Boards"."""

from datetime import UTC, date, datetime
from typing import NamedTuple

from msgspec import Raw

from ..klondike import PREFERRED
from ..postgres.statement import Query, Statement
from ..postgres.transaction import Statements
from ..rules.boards import LIMIT_MAX, NEIGHBOURS, RANKS, Place, Ranked, Window
from ..rules.ids import NIL
from .rows import converted

FIRST = Place(-(2**31) + 1, datetime(1, 1, 2, tzinfo=UTC), NIL)


class Verified(NamedTuple):
    """A verified replay, in the order of the engines that verified them."""

    engine: int = 0
    replay_id: str = NIL


_SHOWN = """
    SELECT ahead, display_name, -deficit AS score, time_seconds, moves, undos, mode, draw_mode, seed AS deal,
        entry.replay_id, entry.received_at, entry.user_id = $2::uuid AS own
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
PAGE = Query(
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
    row=converted(Ranked, time_seconds=Raw),
)

AROUND = Query(
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
    row=converted(Ranked, time_seconds=Raw),
)

# What an older engine verified under an older ruleset, from a place on. It has evidence if it was verified before
# migrations/0017; that of a newer engine never has.
OLDER = Query(
    "verdicts_of_older_rulesets",
    f"""
    SELECT engine, replay_id::text, (
        SELECT user_id::text FROM board_evidence WHERE board_evidence.replay_id = verdicts.replay_id LIMIT 1
    ) AS player
    FROM verdicts
    WHERE ruleset <> '{PREFERRED.name}' AND engine < $1::int AND (engine, replay_id) > ($2::int, $3::uuid)
    ORDER BY engine, replay_id LIMIT $4::int
    """,  # noqa: S608
    row=lambda engine, replay_id, player: (Verified(engine, replay_id), player),
)

# Evidence from before migrations/0036, in a row for each board of mode Classic; that of ranked replays may stay.
FORMER = Query(
    "former_evidence",
    """
    SELECT DISTINCT user_id::text AS player, replay_id::text FROM (
        SELECT user_id, replay_id FROM board_evidence
        WHERE NOT ranked AND board IN ('classic', 'classic/DrawOne', 'classic/DrawThree')
        ORDER BY user_id, replay_id LIMIT $1::int
    ) AS former
    """,
    row=lambda player, replay_id: (player, replay_id),
)

# One player's, whose row the function locks.
PLACE = Statement("place_replays", "SELECT place_replay(id, $1::uuid) FROM unnest($2::text[]::uuid[]) AS id")

BEGUN = Query("day_has_begun", "SELECT $1::date <= (clock_timestamp() AT TIME ZONE 'UTC')::date", row=bool)


async def show(statements: Statements, board: str, player: str, window: Window) -> list[Ranked]:
    """The entries in a window of a board, and one more if there is; none around a player who has none."""
    if window.around_me:
        return await statements.many(AROUND, board, player)
    rows = await statements.run(PAGE, board, player, *(window.after or FIRST), window.limit + 1)
    return PAGE.values(rows)


async def older_evidence(
    statements: Statements, after: Verified, *, engine: int, most: int
) -> tuple[dict[str, list[str]], Verified | None]:
    """The next `most` replays that an engine older than this has verified under an older ruleset.

    Those of them that are evidence, by player, and the last of them all; None at the end.
    """
    last: Verified | None = None
    found: dict[str, list[str]] = {}
    for last, player in await statements.many(OLDER, engine, *after, most):
        if player is not None:
            found.setdefault(player, []).append(last.replay_id)
    return found, last


async def former_evidence(statements: Statements, *, most: int) -> dict[str, list[str]]:
    """Replays whose evidence is in the rows of before migrations/0036, up to `most` rows of them, by player."""
    found: dict[str, list[str]] = {}
    for player, replay_id in await statements.many(FORMER, most):
        found.setdefault(player, []).append(replay_id)
    return found


async def place(statements: Statements, player: str, replay_ids: list[str]) -> None:
    """Bring the evidence of some replays of a player up to their verdicts."""
    await statements.run(PLACE, player, replay_ids)


async def has_begun(statements: Statements, day: date) -> bool:
    """Whether it is this day yet, in UTC, or later."""
    return await statements.one(BEGUN, day)
