"""What the pages for players show of what is stored: docs/pages.md "How a page is made"."""

from datetime import datetime

import msgspec

from ..postgres.statement import Statement
from ..postgres.transaction import Statements
from ..rules.pages import ReplayData, SharedReplay
from .rows import maybe
from .verdicts import answer

REPLAY = Statement(
    "shared_replay",
    """
    SELECT replays.id, username, seed, replays.draw_mode, replays.mode, replays.time_seconds, replays.final_score,
        replays.recorded_at, replays.received_at, unlisted IS NULL,
        status, ruleset, undos, score, moves, reason, checked_at
    FROM replays JOIN users ON users.id = replays.user_id LEFT JOIN verdicts ON verdicts.replay_id = replays.id
    WHERE replays.id = $1::uuid
    """,
)


async def replay(statements: Statements, replay_id: str) -> ReplayData | None:
    """A replay and the verdict on it, without the moves."""
    return maybe(_replay, await statements.run(REPLAY, replay_id))


def _replay(
    replay_id: str,
    username: str,
    seed: str | None,
    draw_mode: str,
    mode: str,
    time_seconds: str,
    final_score: str,
    recorded_at: str,
    received_at: datetime,
    listed: bool,
    *verdict: object,
) -> ReplayData:
    shown = SharedReplay(
        id=replay_id,
        username=username,
        deal=seed,
        draw_mode=draw_mode,
        mode=mode,
        time_seconds=msgspec.Raw(time_seconds),
        final_score=msgspec.Raw(final_score),
        recorded_at=recorded_at,
        received_at=received_at,
        listed=listed,
    )
    return ReplayData(shown, answer(*verdict))  # type: ignore[arg-type]
