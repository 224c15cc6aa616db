"""Players who take over the games of a guest (docs/protocol.md "Guests")."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...access.large_bodies import LargeBodies
from ...access.rate_limit import JOIN, buckets_of
from ...access.tokens import RefreshClaims, Tokens
from ...errors import BadRequest, Unauthorized, existing
from ...events.bus import Bus
from ...events.notices import SessionsEnded
from ...players import progress
from ...players.progress import Change
from ...postgres.database import Database
from ...postgres.statement import Call
from ...postgres.transaction import Transaction
from ...process.audit import audit
from ...rules.administration import suspension_error
from ...rules.guests import JoinRequest, guest_gone, guest_refused, not_a_guest
from ...rules.sessions import SessionRef
from ...rules.sync import SyncAnswer
from ...storage.players import accounts, games, guests, restrictions, sync
from ...storage.players.guests import Pair
from ...storage.replays import replays
from ..route import post
from ..shared_cache import CoalescingCache
from ..wire.reply import Reply
from .sync import Sync, answer, etag


@dataclass(frozen=True, kw_only=True)
class Joins:
    """Gives the games of guests to players.

    Joins of a player with fewer than `quota_bytes` of replays may exceed that by the quota of a guest.
    """

    tag: ClassVar[str] = "guests"

    database: Database
    tokens: Tokens
    sync: Sync
    large_bodies: LargeBodies
    quota_bytes: int | None
    board: CoalescingCache[Reply]
    bus: Bus
    now: Callable[[], datetime]

    @post(
        "/api/me/join",
        protected=True,
        limit=JOIN,
        answer=SyncAnswer,
        errors=(
            "guest",
            "guest_gone",
            "not_a_guest",
            "replay_storage_full",
            "sync_too_large",
            "sync_too_many",
            "user_not_found",
        ),
    )
    async def join(self, *, player: str, session: SessionRef, body: JoinRequest) -> Reply:
        """Give the guest's games and replays to the player, and delete the guest.

        The same player may repeat the request with the same token, and receives the progress that is stored now.
        """
        try:
            claims = self.tokens.read_refresh(body.guest_refresh_token, self.now())
        except Unauthorized:  # not a 401, which would be about the player's own token
            raise not_a_guest() from None
        if claims.user_id == player:
            _check_player(await self.database.run(guests.is_guest, player))
            raise not_a_guest()
        reply = await self.database.transact(self._join, player, session, claims)
        # A repeat, or a guest without progress, is answered like a pull, which records what the session's device has.
        return reply or await self.sync.pull(player=player, session=session, if_none_match=None)

    async def _join(
        self, transaction: Transaction, player: str, session: SessionRef, claims: RefreshClaims
    ) -> Reply | None:
        """Join a guest with a player; return the answer, or None if the player's progress has not changed."""
        guest, now = claims.user_id, self.now()
        pair = existing(await guests.lock_pair(transaction, player, guest))
        _check_player(pair.player_is_guest)
        suspension = await restrictions.suspension(transaction, guest) if pair.suspended else None
        if suspension is not None:
            raise suspension_error(suspension.until, suspension.message, suspension.behind)
        if not _is_to_be_joined(pair):
            return None
        if not await guests.spend(transaction, guest, claims.jti):
            raise not_a_guest()
        saved = await sync.load(transaction, *session)
        theirs = await sync.read(transaction, guest)
        assert saved is not None, "the player's row is locked"
        assert theirs is not None, "the guest's row is locked"
        if await guests.has_replays(transaction, guest):
            await self._check_room(transaction, player)
        change: Change | None = None
        steps: tuple[Call, ...] = ()
        if theirs.payload is not None:
            both = len(theirs.payload) + len(saved.payload or b"")
            shared = await games.shared(transaction, player, guest)
            with self.large_bodies.merging(player, pushed=0, stored=both):
                change = progress.joining(player, theirs.payload, saved, shared, now)
            steps = (*change.steps, sync.answering(*session, change.counts))
        await guests.move(transaction, player, guest)
        await accounts.delete(transaction, guest, buckets_of(guest))
        try:
            await transaction.commit_with(*steps)
        finally:
            if change is not None and change.shown:
                self.board.invalidate()
        audit("guest joined", user_id=player)
        self.bus.publish(SessionsEnded(guest), *(change.notices if change else ()))
        return answer(change.payload, now, change.conflicts, etag(change.payload)) if change else None

    async def _check_room(self, transaction: Transaction, player: str) -> None:
        """Raise BadRequest if the player has no room for replays; otherwise those of a guest fit, all of them."""
        room = await replays.room(transaction, player, None)
        assert room is not None, "the player's row is locked"
        if self.quota_bytes is not None and room.used_bytes >= self.quota_bytes:
            raise BadRequest("replay_storage_full", "replay storage is full")


def _is_to_be_joined(pair: Pair) -> bool:
    """Return whether the guest can be joined; False if the player has joined it before. Raises Refused otherwise."""
    if pair.joined:
        return False
    if not pair.exists:
        raise guest_gone()
    if not pair.is_guest:
        raise not_a_guest()
    return True


def _check_player(is_guest: bool | None) -> None:
    if existing(is_guest):
        raise guest_refused()
