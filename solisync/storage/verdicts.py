"""Verdicts on replays, and timelines of those that are verified: docs/protocol.md "Replays"."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ..klondike import Status, Verdict
from ..postgres.statement import Query, Statement
from ..postgres.transaction import Statements
from ..rules.verdicts import VerdictAnswer
from .replays import RECORDED_AT
from .rows import converted, nested


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
    undo_places: tuple[int, ...] | None
    stored_timeline: bytes | None
    queue: str | None
    attempts: int | None


class TimelineTag(NamedTuple):
    """The strong ETag of the timeline of a replay, with the quotes around it; None where it can't be played back."""

    etag: str | None


@dataclass(frozen=True, slots=True)
class PlaybackSource:
    """What the timeline of a verified replay is made of; or the timeline that is `stored`, compressed by zlib.

    Earlier versions stored timelines. To play one back, nothing else is read then.
    """

    etag: str
    stored: bytes | None
    body: bytes | None
    ruleset: str
    undos: int
    score: int
    moves: int
    undo_places: tuple[int, ...] | None

    @property
    def verdict(self) -> Verdict:
        """The verdict, with the places of undos."""
        return Verdict(
            status=Status.VERIFIED,
            ruleset=self.ruleset,
            undos=self.undos,
            score=self.score,
            moves=self.moves,
            undo_places=self.undo_places or (),
        )


@dataclass(frozen=True, slots=True)
class StoredTimeline:
    """A timeline that an earlier version has stored, with what it can be made of."""

    replay_id: str
    source: PlaybackSource


def etag_of(table: str) -> str:
    """SQL for the entity tag of a timeline; `table` is verdicts, or another name for it.

    A stored timeline counts before the digest, because an older node may have stored it later.
    """
    return f"""coalesce({table}.timeline_etag, '"' || encode({table}.timeline_digest, 'hex') || '"')"""


_ETAG = etag_of("verdicts")
_source = converted(PlaybackSource, stored=bytes, body=str.encode, undo_places=tuple)

VERDICT = Query(
    "verdict",
    """
    SELECT coalesce(status, 'pending') AS status, ruleset, undos, score, moves, reason, checked_at
    FROM replays LEFT JOIN verdicts ON verdicts.replay_id = replays.id WHERE replays.id = $1::uuid
    """,
    row=VerdictAnswer,
)

TIMELINE_TAG = Query(
    "timeline_tag",
    f"""
    SELECT CASE WHEN status = 'verified' THEN {_ETAG} END AS etag
    FROM replays LEFT JOIN verdicts ON verdicts.replay_id = replays.id WHERE replays.id = $1::uuid
    """,  # noqa: S608
    row=TimelineTag,
)

PLAYBACK_SOURCE = Query(
    "playback_source",
    f"""
    SELECT {_ETAG} AS etag, timeline AS stored, CASE WHEN timeline IS NULL THEN body END AS body,
        ruleset, undos, score, moves, CASE WHEN timeline IS NULL THEN undo_places END AS undo_places
    FROM replays JOIN verdicts ON verdicts.replay_id = replays.id
    WHERE replays.id = $1::uuid AND status = 'verified' AND {_ETAG} IS NOT NULL
    """,  # noqa: S608
    row=_source,
)

# While old nodes may still run, a day long, they find the timelines that there are.
STORED_TIMELINE = Query(
    "stored_timeline",
    f"""
    SELECT replay_id::text, {_ETAG} AS etag, timeline AS stored, body, ruleset, undos, score, moves, undo_places
    FROM verdicts JOIN replays ON replays.id = replay_id
    WHERE timeline IS NOT NULL AND replay_id > $1::uuid AND replay_id <= $2::uuid AND status = 'verified'
        AND EXISTS (
            SELECT FROM schema_migrations
            WHERE substr(name, 6) = 'undo_places.sql' AND applied_at < clock_timestamp() - interval '1 day'
        )
    ORDER BY replay_id LIMIT 1
    """,  # noqa: S608
    row=nested(StoredTimeline, lambda replay_id: replay_id, _source),
)

DELETE_TIMELINE = Statement(
    "delete_timeline",
    """
    UPDATE verdicts SET timeline = NULL, timeline_digest = sha256(timeline), undo_places = $3::smallint[]
    WHERE replay_id = $1::uuid AND timeline_etag = $2::text
    """,
)

SHOW = Query(
    "admin_replay",
    f"""
    SELECT replays.id, username, replays.received_at, size, body, mode, draw_mode, seed, final_score, time_seconds,
        {RECORDED_AT}, coalesce(status, 'pending') AS status, reason, ruleset, undos, score, moves, checked_at, engine,
        undo_places, timeline AS stored_timeline,
        CASE WHEN search THEN 'search' WHEN NOT search THEN 'literal' END AS queue, attempts
    FROM replays JOIN users ON users.id = replays.user_id
    LEFT JOIN verdicts ON verdicts.replay_id = replays.id
    LEFT JOIN replay_checks ON replay_checks.replay_id = replays.id
    WHERE replays.id = $1::uuid
    """,  # noqa: S608
    prepared=False,
    row=converted(CheckedReplay, undo_places=tuple, stored_timeline=bytes),
)


async def verdict(statements: Statements, replay_id: str) -> VerdictAnswer | None:
    """The verdict on a replay, which may be pending; None when there is no such replay."""
    return await statements.maybe(VERDICT, replay_id)


async def timeline_tag(statements: Statements, replay_id: str) -> TimelineTag | None:
    """The entity tag of the timeline of a replay; None when there is no such replay."""
    return await statements.maybe(TIMELINE_TAG, replay_id)


async def playback_source(statements: Statements, replay_id: str) -> PlaybackSource | None:
    """What the timeline of a replay is made of; None when it can't be played back, or there is no such replay."""
    return await statements.maybe(PLAYBACK_SOURCE, replay_id)


async def stored_timeline(statements: Statements, after: str, end: str) -> StoredTimeline | None:
    """The first stored timeline of a replay whose id is above `after` and up to `end`."""
    return await statements.maybe(STORED_TIMELINE, after, end)


async def delete_timeline(statements: Statements, replay_id: str, etag: str, undo_places: Sequence[int]) -> None:
    """Delete a stored timeline, if its entity tag is still this, and keep the places of its undos."""
    await statements.run(DELETE_TIMELINE, replay_id, etag, list(undo_places) or None)


async def show(statements: Statements, replay_id: str) -> CheckedReplay | None:
    """A replay with its verdict, and where it waits for the next."""
    return await statements.maybe(SHOW, replay_id)
