"""Verdicts on replays over HTTP (docs/protocol.md "Replays")."""

import zlib
from dataclasses import dataclass

from ...errors import Conflict, NotFound
from ...postgres.database import Database
from ...rules.ids import is_id
from ...storage import verdicts
from ..conditional import matches
from ..wire.reply import Reply

REVALIDATED = {"Cache-Control": "no-cache"}
KEPT = {"Cache-Control": "public, max-age=300"}


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """Shows what the checks of replays have found; solisync.checking makes them."""

    database: Database

    async def show(self, *, replay_id: str) -> Reply:
        """The verdict on a replay."""
        found = await self.database.autocommit(verdicts.verdict, replay_id) if is_id(replay_id) else None
        if found is None:
            raise NotFound("replay_not_found")
        return Reply.of(found).with_headers(REVALIDATED)

    async def timeline(self, *, replay_id: str, if_none_match: str | None) -> Reply:
        """Each step of a verified replay."""
        if not is_id(replay_id):
            raise NotFound("replay_not_found")
        if if_none_match is not None:
            etag = await self.database.autocommit(verdicts.timeline_etag, replay_id)
            if etag is not None and matches(if_none_match, etag):
                return Reply.not_modified({**KEPT, "ETag": etag})
        found = await self.database.autocommit(verdicts.timeline, replay_id)
        if found is None:
            raise NotFound("replay_not_found")
        if found.compressed is None or found.etag is None:
            raise Conflict("not_playable", "replay can not be played back")
        return Reply(body=zlib.decompress(found.compressed), headers={**KEPT, "ETag": found.etag})
