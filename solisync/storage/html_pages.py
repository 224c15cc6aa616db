"""What the pages for players show of what is stored: docs/pages.md "How a page is made"."""

from msgspec import Raw

from ..postgres.statement import Query
from ..postgres.transaction import Statements
from ..rules.html_pages import ReplayData, SharedReplay
from ..rules.verdicts import VerdictAnswer
from .rows import converted, maybe, nested

REPLAY = Query(
    "shared_replay",
    """
    SELECT replays.id, username, seed AS deal, replays.draw_mode, replays.mode, replays.time_seconds,
        replays.final_score, replays.recorded_at, replays.received_at,
        unlisted IS NULL AND NOT EXISTS (SELECT FROM suspensions WHERE suspensions.user_id = users.id) AS listed,
        coalesce(status, 'pending') AS status, ruleset, undos, score, moves, reason, checked_at
    FROM replays JOIN users ON users.id = replays.user_id LEFT JOIN verdicts ON verdicts.replay_id = replays.id
    WHERE replays.id = $1::uuid
    """,
    row=nested(ReplayData, converted(SharedReplay, time_seconds=Raw, final_score=Raw), VerdictAnswer),
)


async def replay(statements: Statements, replay_id: str) -> ReplayData | None:
    """A replay and the verdict on it, without the moves."""
    return maybe(REPLAY, await statements.run(REPLAY, replay_id))
