"""What the pages for players show of what is stored: docs/pages.md "How a page is made"."""

from datetime import datetime
from typing import Any

from msgspec import Raw

from ..postgres.statement import Query
from ..postgres.transaction import Statements
from ..rules.pages import ReplayData, SharedReplay
from ..rules.verdicts import VerdictAnswer, VerdictStatus
from .rows import maybe


def _replay(
    id: str,
    username: str,
    deal: str | None,
    draw_mode: str,
    mode: str,
    time_seconds: str,
    final_score: str,
    recorded_at: str,
    received_at: datetime,
    listed: bool,
    status: VerdictStatus,
    ruleset: str | None,
    undos: int | None,
    score: int | None,
    moves: int | None,
    reason: Any,
    checked_at: datetime | None,
) -> ReplayData:
    seconds, points = Raw(time_seconds), Raw(final_score)
    return ReplayData(
        SharedReplay(id, username, deal, draw_mode, mode, seconds, points, recorded_at, received_at, listed),
        VerdictAnswer(status, ruleset, undos, score, moves, reason, checked_at),
    )


REPLAY = Query(
    "shared_replay",
    """
    SELECT replays.id, username, seed AS deal, draw_mode, mode, time_seconds, final_score, recorded_at,
        replays.received_at, unlisted IS NULL AS listed,
        coalesce(status, 'pending') AS status, ruleset, undos, score, moves, reason, checked_at
    FROM replays JOIN users ON users.id = replays.user_id LEFT JOIN verdicts ON verdicts.replay_id = replays.id
    WHERE replays.id = $1::uuid
    """,
    row=_replay,
)


async def replay(statements: Statements, replay_id: str) -> ReplayData | None:
    """A replay and the verdict on it, without the moves."""
    return maybe(REPLAY, await statements.run(REPLAY, replay_id))
