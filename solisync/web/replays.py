"""Replays over HTTP (docs/protocol.md "Replays")."""

from collections.abc import Callable
from datetime import datetime

from ..errors import BadRequest, NotFound
from ..postgres.database import Database
from ..postgres.transaction import Transaction
from ..rules.ids import is_id
from ..rules.replays import ReceivedReplay, Recent, Uploaded, charge, recent_count
from ..storage import replays
from .conditional import matches
from .shared_cache import CoalescingCache
from .wire.reply import Reply

KEPT = {"Cache-Control": "public, max-age=300"}


class Replays:
    """Stores replays, lists the recent ones and returns each as it was uploaded."""

    def __init__(
        self,
        *,
        database: Database,
        board: CoalescingCache[Reply],
        recent: CoalescingCache[list[Recent]],
        quota_bytes: int | None,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self._database = database
        self._board = board
        self._recent = recent
        self._quota_bytes = quota_bytes
        self._now = now
        self._new_id = new_id

    async def upload(self, *, player: str, body: ReceivedReplay) -> Uploaded:
        """Store a replay byte for byte; a Classic one may improve its player's leaderboard entry."""
        replay_id = self._new_id()
        await self._database.transact(self._store, player, replay_id, body)
        return Uploaded(replay_id)

    async def list_recent(self, *, limit: list[str]) -> Reply:
        """The newest replays of all players."""
        count = recent_count(limit)
        return Reply.of((await self._recent.get())[:count])

    async def fetch(self, *, replay_id: str, if_none_match: str | None) -> Reply:
        """A replay as it was uploaded. It never changes, so its id is its entity tag."""
        if not is_id(replay_id):
            raise NotFound("replay_not_found", "replay not found")
        headers = {**KEPT, "ETag": f'"{replay_id}"'}
        if matches(if_none_match, headers["ETag"]) and await self._database.autocommit(replays.exists, replay_id):
            return Reply(status=304, content_type=None, headers=headers)
        body = await self._database.autocommit(replays.fetch, replay_id)
        if body is None:
            raise NotFound("replay_not_found", "replay not found")
        return Reply(body=body, headers=headers)

    async def _store(self, transaction: Transaction, player: str, replay_id: str, replay: ReceivedReplay) -> None:
        raw, header = replay
        room = await replays.room(transaction, player)
        if room is None:
            raise NotFound("user_not_found", "user not found")
        if self._quota_bytes is not None and room.used_bytes + charge(len(raw)) > self._quota_bytes:
            await transaction.commit()  # what was counted: or each upload that is refused would count again
            raise BadRequest("replay_storage_full", "replay storage is full")
        improved = room.standing.improved_by(header.bests)
        bests = header.bests if improved else None
        try:
            await transaction.commit_with(*replays.storing(player, replay_id, raw, header, bests, self._now()))
        finally:
            self._recent.invalidate()
            if improved:
                self._board.invalidate()
