"""Boards of verified replays, which triggers keep up to date: docs/verification.md "Boards"."""

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import Raw

from ...postgres.declared import one
from ...postgres.statement import Query
from ...postgres.transaction import Statements, Transaction
from ...rules.boards import LIMIT_MAX, NEIGHBOURS, RANKS, BoardEntry, Place, Window
from ...rules.shapes import NIL
from ..players.accounts import LOCK
from ..players.leaderboard import VERIFIED
from ..rows import converted

P = ParamSpec("P")
T = TypeVar("T")

FIRST = Place(-(2**31) + 1, datetime(1, 1, 2, tzinfo=UTC), NIL)

_SHOWN = """
    SELECT ahead AS rank, display_name, -deficit AS score, time_seconds, moves, undos, mode, draw_mode, seed AS deal,
        entry.replay_id, entry.received_at, entry.user_id = $2::uuid AS own
"""
_JOINED = """
    JOIN leaderboard ON leaderboard.user_id = entry.user_id AND visible
    JOIN replays ON replays.id = entry.replay_id
    JOIN verdicts ON verdicts.replay_id = entry.replay_id
    ORDER BY deficit, entry.received_at, entry.replay_id
"""

# The entries ahead are counted in the index, up to the last rank that is shown. A count needs no order. The ORDER BY
# makes the planner stop there, and read neither more of the index nor the table. The longest page has a separate
# constant limit. For a limit that is a parameter, the planner of a prepared statement expects a tenth of all rows, and
# would read the whole leaderboard to join them.
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
    row=converted(BoardEntry, time_seconds=Raw),
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
    row=converted(BoardEntry, time_seconds=Raw),
)

# The entries of a player on the boards that streams can name. For streams, those of mode Classic are one board.
SEEN = Query(
    "seen_of_player",
    f"""
    SELECT board, row(display_name, replay_id, score, moves, undos)::text AS seen
    FROM board_evidence
    JOIN leaderboard ON leaderboard.user_id = board_evidence.user_id AND visible
    JOIN verdicts USING (replay_id)
    WHERE board_evidence.user_id = $1::uuid AND ranked AND (board LIKE 'classic%' OR board LIKE 'daily/%')
    UNION ALL
    SELECT 'leaderboard', row(display_name, best_score, best_time_secs, recorded_at, {VERIFIED})::text
    FROM leaderboard WHERE user_id = $1::uuid AND visible
    """,  # noqa: S608
    row=lambda board, seen: (board, seen),
)


async def show(statements: Statements, board: str, player: str, window: Window) -> list[BoardEntry]:
    """The entries in a window of a board, and the next one if there is one; none around a player without an entry."""
    if window.around_me:
        return await statements.many(AROUND, board, player)
    rows = await statements.run((PAGE, board, player, *(window.after or FIRST), window.limit + 1))
    return PAGE.values(rows)


async def changed_by(
    transaction: Transaction,
    player: str,
    work: Callable[Concatenate[Transaction, P], Awaitable[T]],
    *arguments: P.args,
    **options: P.kwargs,
) -> tuple[T, tuple[str, ...]]:
    """Lock the row of a player and run `work(transaction, …)`.

    Return its result, and the boards whose entry of the player has changed. Boards have the names that streams use;
    boards of deals are left out.
    """
    before = dict(await transaction.many(SEEN, player, first=(LOCK, player)))
    result = await work(transaction, *arguments, **options)
    after = dict(await transaction.many(SEEN, player))
    changed = {board for board, _ in before.items() ^ after.items()}
    return result, tuple(sorted({"verified" if board.startswith("classic") else board for board in changed}))


@one("SELECT $1::date <= (clock_timestamp() AT TIME ZONE 'UTC')::date", row=bool)
async def has_begun(day: date) -> bool:
    """Return whether this day has begun in UTC."""
