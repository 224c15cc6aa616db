"""Verdicts on replays over HTTP (docs/protocol.md "Replays")."""

import zlib
from dataclasses import dataclass
from typing import ClassVar

from ...checking.timelines import Timelines
from ...errors import Conflict, NotFound, existing
from ...klondike import Timeline
from ...postgres.database import Database
from ...rules.replays import VerdictAnswer
from ...rules.shapes import is_id
from ...storage.replays import verdicts
from ..handler_limits import OneAtATime
from ..route import get
from ..wire.reply import Reply, matches

REVALIDATED = {"Cache-Control": "no-cache"}
KEPT = {"Cache-Control": "public, max-age=300"}


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """Shows verdicts and timelines, which solisync.checking makes.

    `for_address` makes one timeline at a time for each address, so that other addresses wait only for that one.
    """

    tag: ClassVar[str] = "replays"

    database: Database
    timelines: Timelines
    for_address: OneAtATime

    @get(
        "/api/replays/{replay_id}/verdict",
        name="verdict",
        summary="Show whether a replay proves its score",
        answer=VerdictAnswer,
        errors=("replay_not_found",),
    )
    async def show(self, *, replay_id: str) -> Reply:
        """Return the verdict on a replay."""
        found = await self.database.run(verdicts.verdict, replay_id) if is_id(replay_id) else None
        return Reply.of(existing(found, "replay_not_found")).with_headers(REVALIDATED)

    @get(
        "/api/replays/{replay_id}/timeline",
        summary="Return each step of a verified replay, for playback",
        answer=Timeline,
        errors=("replay_not_found", "not_playable", "rate_limited"),
    )
    async def timeline(self, *, address: str, replay_id: str, if_none_match: str | None) -> Reply:
        """Return each step of a verified replay."""
        found = await self.database.run(verdicts.timeline_tag, replay_id) if is_id(replay_id) else None
        if found is None:
            raise NotFound("replay_not_found")
        if found.etag is None:
            raise Conflict("not_playable", "replay can not be played back")
        if matches(if_none_match, found.etag):
            return Reply.not_modified({**KEPT, "ETag": found.etag})
        timeline = self.timelines.remembered(found.etag)
        if timeline is None:
            timeline = await self.for_address.run(address, self.timelines.make, replay_id=replay_id, etag=found.etag)
        return Reply(body=zlib.decompress(timeline.compressed), headers={**KEPT, "ETag": timeline.etag})
