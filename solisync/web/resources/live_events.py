"""Live events over HTTP: a stream of Server-Sent Events (docs/live.md)."""

from dataclasses import dataclass
from typing import ClassVar

from ...access.rate_limit import LocalRateLimit
from ...errors import Unauthorized, Unavailable, existing
from ...events.streams import Streams
from ...postgres.database import Database
from ...rules.events import NAMES, StreamQuery, boards_wanted
from ...rules.sessions import SessionRef
from ...storage import streams
from ...storage.streams import StreamStart
from ..route import EventStream, get
from ..wire.reply import Reply

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # the second stops nginx's buffering


@dataclass(frozen=True, kw_only=True)
class LiveEvents:
    """Opens streams, whose events come from solisync.events."""

    tag: ClassVar[str] = "events"

    database: Database
    live_streams: Streams
    rate_limit: LocalRateLimit

    @get(
        "/api/events",
        name="events",
        summary="Stream changes as they happen",
        protected=True,
        answer=EventStream({name: shape for shape, name in NAMES.items()}),
        errors=("user_not_found", "rate_limited", "not_found"),
    )
    async def stream(
        self, *, player: str, session: SessionRef, address: str, query: StreamQuery, head_only: bool
    ) -> Reply:
        """Open a stream, which begins with the revision of the player's progress."""
        boards = boards_wanted(query.board)
        self.rate_limit.count(player)
        try:
            stream = self.live_streams.reserve(player=player, expiry=session.expiry, address=address, boards=boards)
        except Unavailable:
            await self._start(player, session)  # a client that will never get a stream must not try again
            raise
        try:
            start = await self._start(player, session)
            admitted = self.live_streams.admit(stream, start)
        except BaseException:
            self.live_streams.forget(stream)
            raise
        if head_only:
            self.live_streams.forget(stream)
        return Reply(stream=admitted, content_type=f"{MEDIA_TYPE}; charset=utf-8", headers=HEADERS)

    async def _start(self, player: str, session: SessionRef) -> StreamStart:
        """Return the first data of a stream; raises Refused unless the player and the session exist."""
        start = existing(await self.database.run(streams.start, *session))
        if start.session_id is None:
            raise Unauthorized
        return start
