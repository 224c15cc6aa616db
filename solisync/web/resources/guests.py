"""Guests over HTTP: accounts without a password, which become players or join one (docs/protocol.md "Guests")."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...access.large_bodies import LargeBodies
from ...access.passwords import Passwords
from ...access.rate_limit import AUTH, Limit, RateLimiter, buckets_of
from ...access.tokens import RefreshClaims, Tokens
from ...errors import BadRequest, Conflict, DatabaseError, Forbidden, NotFound, Unauthorized
from ...events.bus import Bus
from ...events.notices import BoardsChanged, Notice, ProgressStored, SessionsEnded
from ...postgres.database import Database
from ...postgres.statement import Call
from ...postgres.transaction import Transaction
from ...process.audit import audit
from ...rules.accounts import AuthRequest, Me, TokenPair, check_new_password, check_username, me
from ...rules.administration import suspension_error
from ...rules.analytics import names_of_rename
from ...rules.counting import NO_GAMES, counts_of
from ...rules.documents import read_stored, revision
from ...rules.guests import GuestRequest, JoinRequest, joined, new_username
from ...rules.leaderboard import bests_of
from ...rules.sync import PAYLOAD_MAX_BYTES, Document, SyncAnswer, SyncConflict, check_bounds
from ...storage import accounts, guests, restrictions, sync
from ...storage.guests import Pair
from ..route import Json, post
from ..shared_cache import CoalescingCache
from ..wire.reply import Reply
from .accounts import REGISTER_ERRORS
from .sync import Sync, answer


@dataclass(frozen=True, kw_only=True)
class Guests:
    """Creates guests, makes them players, and gives their games to players.

    `auth_limit` counts claims by address, and `limit` counts new guests. Without `limit` new guests are refused.
    """

    tag: ClassVar[str] = "guests"

    database: Database
    passwords: Passwords
    tokens: Tokens
    limiter: RateLimiter
    auth_limit: Limit
    limit: Limit | None
    sync: Sync
    large_bodies: LargeBodies
    board: CoalescingCache[Reply]
    bus: Bus
    now: Callable[[], datetime]
    new_id: Callable[[], str]

    @post(
        "/api/auth/guest",
        name="guest",
        private=True,
        limit=AUTH,
        body=Json(GuestRequest, optional=True),
        only_if=lambda settings: settings.guest_limit is not None,
    )
    async def begin(self, *, body: GuestRequest, address: str, user_agent: str | None) -> TokenPair:
        """Create an account without a password, and begin its only session."""
        assert self.limit is not None
        await self.limiter.admit(self.limit, address)
        user_id, now = self.new_id(), self.now()
        record = self.tokens.record(now, user_agent)
        created = False
        while not created:  # retries, because a player may have registered this name
            created = await self.database.run(
                accounts.register,
                user_id=user_id,
                username=new_username(),
                password_hash=self.passwords.hash_of_guest(),
                now=now,
                record=record,
                guest=True,
            )
        audit("guest", user_id=user_id)
        return self.tokens.pair(user_id, record, record.access_expiry)

    @post("/api/me/claim", protected=True, errors=(*REGISTER_ERRORS, "not_a_guest", "user_not_found"))
    async def claim(self, *, player: str, body: AuthRequest, address: str) -> Me:
        """Give the guest a username and a password. The account, its sessions and its progress stay."""
        await self.limiter.admit(self.auth_limit, address)
        username = check_username(body.username)
        password = check_new_password(body.password)
        self.passwords.require_room()
        _check_guest(await self.database.run(guests.is_guest, player))
        if await self.database.run(accounts.is_taken, username):  # before the expensive hash; the update decides
            raise _taken()
        password_hash = await self.passwords.hash(password)
        try:
            await self.database.transact(self._claim, player, username, password_hash)
        except DatabaseError:
            owner = await self.database.run(accounts.find, None, username)
            if owner is not None and owner.id != player:
                raise _taken() from None
            raise  # the outcome may be unknown, and the claim may have succeeded
        audit("register", user_id=player, reason="a guest")
        return me(player, username, None)

    @post(
        "/api/me/join",
        protected=True,
        answer=SyncAnswer,
        errors=("guest", "guest_gone", "not_a_guest", "sync_too_large", "sync_too_many", "user_not_found"),
    )
    async def join(self, *, player: str, access_expiry: int, body: JoinRequest) -> Reply:
        """Give the guest's games and replays to the player, and delete the guest.

        The same player may repeat the request with the same token, and receives the progress that is stored now.
        """
        claims = self.tokens.read_refresh(body.guest_refresh_token, self.now())
        if claims.user_id == player:
            _check_player(await self.database.run(guests.is_guest, player))
            raise _not_a_guest()
        reply = await self.database.transact(self._join, player, access_expiry, claims)
        # A repeat, or a guest without progress, is answered like a pull, which records what the session's device has.
        return reply or await self.sync.pull(player=player, access_expiry=access_expiry, if_none_match=None)

    async def _claim(self, transaction: Transaction, player: str, username: str, password_hash: str) -> None:
        former = await guests.claim(transaction, player, username, password_hash)
        if former is None:
            _check_guest(await guests.is_guest(transaction, player))
            raise _not_a_guest()
        await guests.rename_events(transaction, player, names_of_rename(former, username))

    async def _join(
        self, transaction: Transaction, player: str, access_expiry: int, claims: RefreshClaims
    ) -> Reply | None:
        """Join a guest with a player; return the answer, or None if the player's progress has not changed."""
        guest, now = claims.user_id, self.now()
        pair = await guests.lock_pair(transaction, player, guest)
        if pair is None:
            raise NotFound("user_not_found")
        _check_player(pair.player_is_guest)
        suspension = await restrictions.suspension(transaction, guest) if pair.suspended else None
        if suspension is not None:
            raise suspension_error(suspension.until, suspension.message)
        if not _is_to_be_joined(pair):
            return None
        if not await guests.spend(transaction, guest, claims.jti):
            raise Unauthorized
        saved = await sync.load(transaction, player, access_expiry)
        theirs = await sync.read(transaction, guest)
        assert saved is not None, "the player's row is locked"
        assert theirs is not None, "the guest's row is locked"
        reply, shown = None, False
        steps: tuple[Call, ...] = ()
        notices: list[Notice] = [SessionsEnded(guest)]
        if theirs.payload is not None:
            with self.large_bodies.merging(player, pushed=len(theirs.payload), stored=len(saved.payload or b"")):
                merged, conflicts = _merged(theirs.payload, saved.payload, player, now)
            payload, bests = merged.encode(), bests_of(merged.payload.stats)
            told = counts_of(merged.payload).with_most_draws(saved.counts or NO_GAMES)
            improved = saved.standing.improved_by(bests)
            steps = (
                *sync.saving(player, payload, told, bests if improved else None, now, first=saved.payload is None),
                (guests.REMEMBER, player, access_expiry, told.encode()),
            )
            notices.append(ProgressStored(player, revision(payload), saved.session))
            shown = improved and bool(saved.standing.visible)
            reply = answer(payload, now, conflicts)
        await guests.move(transaction, player, guest)
        await accounts.delete(transaction, guest, buckets_of(guest))
        try:
            await transaction.commit_with(*steps)
        finally:
            if shown:
                self.board.invalidate()
        if shown:
            notices.append(BoardsChanged(("leaderboard",)))
        audit("guest joined", user_id=player)
        self.bus.publish(*notices)
        return reply


def _merged(guest: bytes, saved: bytes | None, player: str, now: datetime) -> tuple[Document, list[SyncConflict]]:
    """The merged progress and the conflicts; raises BadRequest if it exceeds a player's limits."""
    stored = None if saved is None else read_stored(saved)
    merged, conflicts = joined(read_stored(guest), stored, player, now)
    check_bounds(merged, stored)
    if len(merged.encode()) > PAYLOAD_MAX_BYTES:
        raise BadRequest("sync_too_large", "sync payload too large")
    return merged, conflicts


def _is_to_be_joined(pair: Pair) -> bool:
    """Return whether the guest can be joined; False if the player has joined it before. Raises Refused otherwise."""
    if pair.joined:
        return False
    if not pair.exists:
        raise Conflict("guest_gone", "this guest is gone")
    if not pair.is_guest:
        raise _not_a_guest()
    return True


def _check_player(is_guest: bool | None) -> None:
    if is_guest is None:
        raise NotFound("user_not_found")
    if is_guest:
        raise Forbidden("guest", "a guest can't do this")


def _check_guest(is_guest: bool | None) -> None:
    if is_guest is None:
        raise NotFound("user_not_found")
    if not is_guest:
        raise _not_a_guest()


def _not_a_guest() -> Conflict:
    return Conflict("not_a_guest", "this account is not a guest")


def _taken() -> Conflict:
    return Conflict("username_taken", "username already taken")
