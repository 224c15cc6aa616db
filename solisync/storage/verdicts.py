"""Verdicts on replays, and timelines of those that are verified: docs/protocol.md "Replays"."""

from dataclasses import dataclass, replace
from datetime import datetime

from ..postgres.statement import Statement
from ..postgres.transaction import Statements
from ..rules.verdicts import PENDING, VerdictAnswer
from .rows import maybe

VERDICT = Statement(
    "verdict",
    """
    SELECT status, ruleset, undos, score, moves, reason, checked_at
    FROM replays LEFT JOIN verdicts ON verdicts.replay_id = replays.id WHERE replays.id = $1::uuid
    """,
)

TIMELINE_ETAG = Statement("timeline_etag", "SELECT timeline_etag FROM verdicts WHERE replay_id = $1::uuid")

TIMELINE = Statement(
    "timeline",
    """
    SELECT timeline, timeline_etag
    FROM replays LEFT JOIN verdicts ON verdicts.replay_id = replays.id WHERE replays.id = $1::uuid
    """,
)

SHOW = Statement(
    "admin_replay",
    """
    SELECT replays.id, username, replays.received_at, size, body, mode, draw_mode, seed, final_score, time_seconds,
        recorded_at, coalesce(status, 'pending'), reason, ruleset, undos, score, moves, checked_at, engine, timeline,
        CASE WHEN search THEN 'search' WHEN NOT search THEN 'literal' END, attempts
    FROM replays JOIN users ON users.id = replays.user_id
    LEFT JOIN verdicts ON verdicts.replay_id = replays.id
    LEFT JOIN replay_checks ON replay_checks.replay_id = replays.id
    WHERE replays.id = $1::uuid
    """,
    prepared=False,
)


@dataclass(frozen=True, slots=True)
class CheckedReplay:
    """A replay with its verdict; `queue` is that in which it waits, "literal" or "search", or None."""

    id: str
    username: str
    received_at: datetime
    size: int
    body: str
    mode: str
    draw_mode: str
    seed: str | None
    final_score: str
    time_seconds: str
    recorded_at: str
    status: str
    reason: str | None
    ruleset: str | None
    undos: int | None
    score: int | None
    moves: int | None
    checked_at: datetime | None
    engine: int | None
    timeline: bytes | None
    queue: str | None
    attempts: int | None


@dataclass(frozen=True, slots=True)
class StoredTimeline:
    """A timeline, compressed by zlib, and its strong ETag with the quotes around it; both None where there is none."""

    compressed: bytes | None
    etag: str | None


async def verdict(statements: Statements, replay_id: str) -> VerdictAnswer | None:
    """The verdict on a replay, which may be pending; None when there is no such replay."""
    return maybe(answer, await statements.run(VERDICT, replay_id))


async def timeline(statements: Statements, replay_id: str) -> StoredTimeline | None:
    """The timeline of a replay; None when there is no such replay."""
    rows = await statements.run(TIMELINE, replay_id)
    return maybe(lambda content, etag: StoredTimeline(None if content is None else bytes(content), etag), rows)


async def timeline_etag(statements: Statements, replay_id: str) -> str | None:
    """The ETag of the timeline of a replay, if it has one."""
    return maybe(lambda etag: etag, await statements.run(TIMELINE_ETAG, replay_id))


async def show(statements: Statements, replay_id: str) -> CheckedReplay | None:
    """A replay with its verdict, and where it waits for the next."""
    found = maybe(CheckedReplay, await statements.run(SHOW, replay_id))
    return found and replace(found, timeline=found.timeline and bytes(found.timeline))


def answer(
    status: str | None,
    ruleset: str | None,
    undos: int | None,
    score: int | None,
    moves: int | None,
    reason: str | None,
    checked_at: datetime | None,
) -> VerdictAnswer:
    if status is None:
        return PENDING
    return VerdictAnswer(
        status=status,  # type: ignore[arg-type]
        ruleset=ruleset,
        undos=undos,
        score=score,
        moves=moves,
        reason=reason,  # type: ignore[arg-type]
        checked_at=checked_at,
    )
