"""Cloud saves over HTTP: pull and push (docs/sync.md, docs/protocol.md "Progress")."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

import msgspec
from msgspec import structs

from ...access.large_bodies import LargeBodies
from ...errors import BadRequest, existing
from ...events.bus import Bus
from ...players import progress
from ...postgres.database import Database
from ...postgres.transaction import Transaction
from ...process.metrics import Metrics
from ...rules.counting import Basis, counts_of
from ...rules.documents import Pushed, default_document, read_pushed, read_stored, revision
from ...rules.sessions import SessionRef
from ...rules.shapes import NIL, canonical_uuid
from ...rules.sync import Document, Payload, SyncAnswer, SyncConflict
from ...storage.players import sync
from ..route import Json, get, post
from ..shared_cache import CoalescingCache
from ..wire.reply import Reply, matches

NO_HEADERS: Mapping[str, str] = {}

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True)
class Sync:
    """Merges the progress that devices push, and returns the result."""

    tag: ClassVar[str] = "sync"

    database: Database
    board: CoalescingCache[Reply]
    large_bodies: LargeBodies
    metrics: Metrics
    bus: Bus
    now: Callable[[], datetime]

    @get(
        "/api/sync/pull",
        summary="Return the stored progress of the player",
        protected=True,
        answer=SyncAnswer,
        errors=("user_not_found",),
    )
    async def pull(self, *, player: str, session: SessionRef, if_none_match: str | None) -> Reply:
        """Return the player's stored progress, or the defaults before the first push; 304 if the ETag is current.

        Either way, the session is recorded as knowing the stored progress: a client with the current ETag has received
        that progress before, or has pushed it.
        """
        pulled = existing(await self.database.run(sync.pull, *session))
        now = self.now()
        if pulled.payload is None:
            return answer(default_document(player, now).encode(), now, [])
        if pulled.uncounted:
            counts = counts_of(read_stored(pulled.payload).payload)
            await self.database.run(sync.pull_uncounted, *session, pulled.payload, counts)
        headers = etag(pulled.payload)
        if (
            if_none_match is not None
            and if_none_match.strip() != "*"
            and matches(if_none_match, headers["ETag"].removeprefix("W/"))
        ):
            return Reply.not_modified(headers)
        return answer(pulled.payload, now, [], headers)

    @post(
        "/api/sync/push",
        summary="Merge a device's progress into the stored progress",
        protected=True,
        body=Json(Payload, read_pushed),
        answer=SyncAnswer,
        errors=("user_id_mismatch", "sync_too_large", "sync_too_many", "user_not_found"),
    )
    async def push(self, *, player: str, session: SessionRef, body: Pushed) -> Reply:
        """Merge a device's progress into the stored progress; return once the merge is committed."""
        payload, unknown_fields = body.document
        owner = canonical_uuid(payload.user_id)
        if owner is None or owner not in (player, NIL):  # clients that do not know their id send the nil UUID
            raise BadRequest("user_id_mismatch", "user_id mismatch")
        pushed = body._replace(document=Document(structs.replace(payload, user_id=owner), unknown_fields))
        reply, conflicts, basis = await self.database.transact(self._merge, player, session, pushed)
        self.metrics.merges.labels(basis.value).inc()
        for conflict in conflicts:
            self.metrics.conflicts.labels(conflict.field).inc()
        return reply

    async def _merge(
        self, transaction: Transaction, player: str, session: SessionRef, pushed: Pushed
    ) -> tuple[Reply, list[SyncConflict], Basis]:
        saved = existing(await sync.load(transaction, *session))
        now = self.now()
        with self.large_bodies.merging(player, pushed=pushed.size, stored=len(saved.payload or b"")):
            change = progress.pushed(player, pushed.document, saved, now)
        try:
            await transaction.commit_with(*change.steps)
        finally:
            if change.shown:
                self.board.invalidate()
        if change.notices:
            self.bus.publish(*change.notices)
        reply = answer(change.payload, now, change.conflicts, etag(change.payload))
        return reply, change.conflicts, change.basis


def etag(payload: bytes) -> dict[str, str]:
    """The ETag of an answer with a stored payload: its revision. It is weak, because the answer contains a time."""
    return {"ETag": f'W/"{revision(payload)}"'}


def answer(
    payload: bytes, now: datetime, conflicts: list[SyncConflict], headers: Mapping[str, str] = NO_HEADERS
) -> Reply:
    """A SyncAnswer around an encoded payload."""
    time, listed = _encode(now.astimezone(UTC)), _encode(conflicts)
    return Reply(body=b'{"merged":%b,"server_time":%b,"conflicts":%b}' % (payload, time, listed), headers=headers)
