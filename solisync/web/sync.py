"""Cloud saves over HTTP: pull and push (contract §7)."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from msgspec import structs

from ..errors import BadRequest, NotFound
from ..postgres.database import Database
from ..postgres.transaction import Transaction
from ..process.metrics import Metrics
from ..rules.ids import canonical_uuid
from ..rules.leaderboard import bests_of
from ..rules.merge import merge
from ..rules.saved import default_document, read_saved
from ..rules.sync import PAYLOAD_MAX_BYTES, Document, Payload, SyncConflict, read_unknown
from ..storage import sync
from .shared_cache import CoalescingCache
from .wire.reply import Reply

NIL = str(UUID(int=0))

_encode = msgspec.json.Encoder().encode


class Sync:
    """Merges what devices push, and hands out the result."""

    def __init__(
        self, *, database: Database, board: CoalescingCache[Reply], metrics: Metrics, now: Callable[[], datetime]
    ) -> None:
        self._database = database
        self._metrics = metrics
        self._board = board
        self._now = now

    async def pull(self, *, player: str) -> Reply:
        """The player's progress as it is stored; the defaults when they never pushed."""
        pulled = await self._database.autocommit(sync.pull, player)
        if pulled is None:
            raise NotFound("user not found")
        now = self._now()
        if pulled.payload is None:
            return _answer(default_document(player, now).encode(), now, [])
        return _answer(pulled.payload, now, [])

    async def push(self, *, player: str, body: Payload, raw: bytes) -> Reply:
        """Merge a device's progress into the stored one; answers once that is committed."""
        owner = canonical_uuid(body.user_id)
        if owner is None or owner not in (player, NIL):  # clients that don't know their id send nil for "mine"
            raise BadRequest("user_id mismatch")
        pushed = Document(structs.replace(body, user_id=owner), read_unknown(raw))
        reply, conflicts = await self._database.transact(self._merge, player, pushed)
        self._metrics.merges.inc()
        for conflict in conflicts:
            self._metrics.conflicts.labels(conflict.field).inc()
        return reply

    async def _merge(self, transaction: Transaction, player: str, pushed: Document) -> tuple[Reply, list[SyncConflict]]:
        saved = await sync.load(transaction, player)
        if saved is None:
            raise NotFound("user not found")
        now = self._now()
        stored = None if saved.payload is None else read_saved(saved.payload)
        merged, conflicts = merge(pushed, stored, now)
        payload = merged.encode()
        if len(payload) > PAYLOAD_MAX_BYTES:
            raise BadRequest("sync payload too large")
        bests = bests_of(merged.payload.stats)
        improved = saved.standing.improved_by(bests)
        try:
            steps = sync.saving(player, payload, bests if improved else None, now, first=stored is None)
            await transaction.commit_with(*steps)
        finally:
            if improved:
                self._board.invalidate()
        return _answer(payload, now, conflicts), conflicts


def _answer(payload: bytes, now: datetime, conflicts: list[SyncConflict]) -> Reply:
    """A SyncAnswer around a payload that is encoded already."""
    time, told = _encode(now.astimezone(UTC)), _encode(conflicts)
    return Reply(body=b'{"merged":%b,"server_time":%b,"conflicts":%b}' % (payload, time, told))
