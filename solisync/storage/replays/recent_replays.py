"""The list of recent replays of all players, and its pages: docs/protocol.md "Replays"."""

from ...postgres.statement import Query
from ...postgres.transaction import Statements
from ...rules.queries import ListPosition
from ...rules.replay_lists import RECENT_MAX, Recent
from ..paging import END
from ..rows import converted
from .replays import NUMBERS, SHOWN


def _page(condition: str, verdict: str) -> str:
    """SQL for the newest listed replays before a position, of players who are not suspended: one more than a page has.

    The table public_replays has their keys, in the order of the list. It also has those of a large account for some
    minutes after its suspension. The replays are looked up one by one, by their keys: PostgreSQL joins a subquery with
    a LIMIT in no other way.
    """
    return f"""
        SELECT page.id, {SHOWN}, {verdict} AS verdict
        FROM (
            SELECT received_at, id FROM public_replays AS key
            WHERE {condition} (received_at, id) < ($1::timestamptz, $2::uuid)
                AND NOT (SELECT EXISTS (SELECT FROM replays JOIN suspensions USING (user_id) WHERE replays.id = key.id))
            ORDER BY received_at DESC, id DESC LIMIT {RECENT_MAX + 1}
        ) AS page CROSS JOIN LATERAL (
            SELECT user_id, seed, draw_mode, mode, time_seconds, final_score, recorded_at FROM replays
            WHERE id = page.id LIMIT 1
        ) AS replay JOIN users ON users.id = user_id
        ORDER BY received_at DESC, page.id DESC
    """  # noqa: S608


_ROW = converted(Recent, **NUMBERS)
PAGE = Query(
    "recent_page",
    _page("", "coalesce((SELECT status FROM verdicts WHERE replay_id = page.id), 'pending')"),
    row=_ROW,
)
VERIFIED_PAGE = Query("recent_verified_page", _page("verified AND", "'verified'"), row=_ROW)


async def recent(statements: Statements, verified: bool, before: ListPosition | None = None) -> list[Recent]:
    """Up to RECENT_MAX + 1 listed replays before a position, newest first; with `verified`, of the verified ones."""
    return await statements.many(VERIFIED_PAGE if verified else PAGE, *(before or END))
