"""The list of recent replays of all players, and its pages: docs/protocol.md "Replays"."""

from ..postgres.statement import Query
from ..postgres.transaction import Statements
from ..rules.queries import ListPosition
from ..rules.replay_lists import RECENT_MAX, VERIFIED_AMONG, Recent
from .paging import END
from .replays import NUMBERS, SHOWN
from .rows import converted


def _newest(count: int) -> str:
    """SQL for the newest listed replays of players who are not suspended, by their keys in the table public_replays.

    Only if that table has too few, older replays are read too (migrations/0042), in the order of their index, which
    begins with `unlisted`. A subquery excludes suspended players: for a join the planner might give up that order,
    because it takes `IS NULL` to be rare. The constant limit of older replays is for the planner, which would otherwise
    expect a tenth of all rows; the outer one depends on the table.
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


# Looks replays up one by one, by their keys: PostgreSQL joins a subquery with a LIMIT in no other way.
_LOOKED_UP = """
    CROSS JOIN LATERAL (
        SELECT user_id, seed, draw_mode, mode, time_seconds, final_score, recorded_at FROM replays
        WHERE id = {}.id LIMIT 1
    ) AS replay JOIN users ON users.id = user_id
"""

# Finds the newest replays by the index first, and only then looks up the replays, players and verdicts.
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

# Reads in the same order, and so stops once enough are verified. The status isn't joined, because for a join the
# planner may read all verdicts into a hash table.
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


def _keys(count: int) -> str:
    """SQL for the keys of the newest `count` listed replays before a position, in no order.

    Among those that are older than the table public_replays are replays of suspended players.
    """
    before = "(received_at, id) < ($1::timestamptz, $2::uuid)"
    return f"""
        SELECT received_at, id FROM (
            (SELECT received_at, id FROM public_replays WHERE {before} ORDER BY received_at DESC, id DESC LIMIT {count})
            UNION ALL
            (SELECT received_at, id FROM replays
            WHERE unlisted IS NULL AND {before} AND received_at < (SELECT since FROM public_replays_begin)
            ORDER BY unlisted, received_at DESC, id DESC LIMIT {count})
        ) AS listed ORDER BY received_at DESC, id DESC LIMIT {count}
    """  # noqa: S608


def _page(count: int, condition: str) -> str:
    """SQL for the newest of these replays that fulfil a condition: at most one more than a page has."""
    return f"""
        SELECT page.id, {SHOWN}, coalesce((SELECT status FROM verdicts WHERE replay_id = page.id), 'pending') AS verdict
        FROM (
            SELECT received_at, id FROM ({_keys(count)}) AS key
            WHERE {condition}
                NOT (SELECT EXISTS (SELECT FROM replays JOIN suspensions USING (user_id) WHERE replays.id = key.id))
            ORDER BY received_at DESC, id DESC LIMIT {RECENT_MAX + 1}
        ) AS page {_LOOKED_UP.format("page")}
        ORDER BY received_at DESC, page.id DESC
    """  # noqa: S608


def _end(count: int) -> str:
    """SQL for the last of these keys; no row if there are fewer than `count`."""
    return f"""
        SELECT received_at AS time, id FROM ({_keys(count)}) AS key
        ORDER BY received_at DESC, id DESC LIMIT 1 OFFSET {count - 1}
    """  # noqa: S608


_PAGE_ROW = converted(Recent, **NUMBERS)
PAGE = Query("recent_page", _page(RECENT_MAX + 1, ""), row=_PAGE_ROW)
PAGE_END = Query("recent_page_end", _end(RECENT_MAX + 1), row=ListPosition)
VERIFIED_PAGE = Query(
    "recent_verified_page",
    _page(VERIFIED_AMONG, "(SELECT status FROM verdicts WHERE replay_id = key.id) = 'verified' AND"),
    row=_PAGE_ROW,
)
VERIFIED_PAGE_END = Query("recent_verified_page_end", _end(VERIFIED_AMONG), row=ListPosition)


async def recent(statements: Statements, verified: bool) -> list[Recent]:
    """Up to RECENT_MAX of the newest listed replays, newest first; with `verified`, of the verified ones."""
    query = VERIFIED if verified else RECENT
    return await statements.many(query)


async def recent_page(
    statements: Statements, verified: bool, before: ListPosition | None
) -> tuple[list[Recent], ListPosition | None]:
    """Up to RECENT_MAX + 1 listed replays before a position, newest first; with `verified`, of the verified ones.

    If there are fewer, also returns the place where the search has ended, or None at the end of the list.
    """
    page, end = (VERIFIED_PAGE, VERIFIED_PAGE_END) if verified else (PAGE, PAGE_END)
    place = before or END
    replays = await statements.many(page, *place)
    if len(replays) > RECENT_MAX:
        return replays, None
    ended = await statements.maybe(end, *place)
    return replays, ended
