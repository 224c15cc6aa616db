"""Deletes the timelines that earlier versions stored, once they can be made again (docs/verification.md)."""

import zlib
from dataclasses import replace
from uuid import uuid4

from ..klondike import undo_places
from ..postgres.database import Database
from ..rules.ids import NIL
from ..storage import verdicts
from ..storage.verdicts import StoredTimeline
from .timelines import Timelines

LAST = "f" * 8 + "-ffff-ffff-ffff-" + "f" * 12
MOST = 2_000  # in a round of housekeeping: some 20 s


class StoredTimelines:
    """Goes through all stored timelines once, by the ids of their replays, from a random one on.

    So processes that do this at once seldom meet. What is done is done whenever this ends. A timeline that can't be
    made again to the byte stays, and is served as it is.
    """

    def __init__(self, *, database: Database, timelines: Timelines) -> None:
        self._database = database
        self._timelines = timelines
        middle = str(uuid4())
        self._left: list[tuple[str, str]] = [(middle, LAST), (NIL, middle)]

    async def delete_some(self, most: int = MOST) -> None:
        """Look at the next timelines, up to so many."""
        for _ in range(most):
            if not self._left:
                return
            (after, end), *rest = self._left
            found = await self._database.autocommit(verdicts.stored_timeline, after, end)
            self._left = rest if found is None else [(found.replay_id, end), *rest]
            if found is not None:
                await self._delete(found)

    async def _delete(self, found: StoredTimeline) -> None:
        assert found.source.stored is not None
        timeline = zlib.decompress(found.source.stored)
        places = undo_places(timeline)
        made = await self._timelines.play(replace(found.source, undo_places=places))
        if made is not None and zlib.decompress(made) == timeline:
            await self._database.autocommit(verdicts.delete_timeline, found.replay_id, found.source.etag, places)
