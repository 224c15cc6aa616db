"""Verdicts on replays, and timelines of those that are verified: docs/protocol.md "Replays"."""

from dataclasses import dataclass
from datetime import datetime

from ..postgres.statement import Query
from ..postgres.transaction import Statements
from ..rules.verdicts import VerdictAnswer
from .rows import converted, maybe


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


VERDICT = Query(
    "verdict",
    """
    SELECT coalesce(status, 'pending') AS status, ruleset, undos, score, moves, reason, checked_at
    FROM replays LEFT JOIN verdicts ON verdicts.replay_id = replays.id WHERE replays.id = $1::uuid
    """,
    row=VerdictAnswer,
)

TIMELINE_ETAG = Query(
    "timeline_etag", "SELECT timeline_etag FROM verdicts WHERE replay_id = $1::uuid", row=lambda etag: etag
)

TIMELINE = Query(
    "timeline",
    """
    SELECT timeline AS compressed, timeline_etag AS etag
    FROM replays LEFT JOIN verdicts ON verdicts.replay_id = replays.id WHERE replays.id = $1::uuid
    """,
    row=converted(StoredTimeline, compressed=bytes),
)

SHOW = Query(
    "admin_replay",
    """
    SELECT replays.id, username, replays.received_at, size, body, mode, draw_mode, seed, final_score, time_seconds,
        recorded_at, coalesce(status, 'pending') AS status, reason, ruleset, undos, score, moves, checked_at, engine,
        timeline, CASE WHEN search THEN 'search' WHEN NOT search THEN 'literal' END AS queue, attempts
    FROM replays JOIN users ON users.id = replays.user_id
    LEFT JOIN verdicts ON verdicts.replay_id = replays.id
    LEFT JOIN replay_checks ON replay_checks.replay_id = replays.id
    WHERE replays.id = $1::uuid
    """,
    prepared=False,
    row=converted(CheckedReplay, timeline=bytes),
)


async def verdict(statements: Statements, replay_id: str) -> VerdictAnswer | None:
    """The verdict on a replay, which may be pending; None when there is no such replay."""
    return maybe(VERDICT, await statements.run(VERDICT, replay_id))


async def timeline(statements: Statements, replay_id: str) -> StoredTimeline | None:
    """The timeline of a replay; None when there is no such replay."""
    return maybe(TIMELINE, await statements.run(TIMELINE, replay_id))


async def timeline_etag(statements: Statements, replay_id: str) -> str | None:
    """The ETag of the timeline of a replay, if it has one."""
    return maybe(TIMELINE_ETAG, await statements.run(TIMELINE_ETAG, replay_id))


async def show(statements: Statements, replay_id: str) -> CheckedReplay | None:
    """A replay with its verdict, and where it waits for the next."""
    return maybe(SHOW, await statements.run(SHOW, replay_id))
