"""Guests over HTTP: accounts without a password, which may become players (docs/protocol.md "Guests")."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...access.passwords import Passwords
from ...access.rate_limit import AUTH, PASSWORD, Limit, RateLimiter
from ...access.tokens import Tokens
from ...errors import Conflict, DatabaseError, Forbidden, NotFound, TooMany, Unauthorized, existing
from ...events.bus import Bus
from ...events.notices import SessionsEnded
from ...postgres.database import Database
from ...postgres.transaction import Statements, Transaction
from ...process.audit import audit
from ...rules.accounts import Identity, Me, TokenPair, check_new_password, check_username, me
from ...rules.administration import suspension_error
from ...rules.analytics import names_of_rename
from ...rules.guests import (
    ClaimRequest,
    GuestKeyChange,
    GuestPair,
    GuestRequest,
    guest_gone,
    new_username,
    not_a_guest,
)
from ...rules.recovery import digest
from ...rules.replay_lists import Recent
from ...rules.sessions import RefreshRecord, SessionRef
from ...rules.shapes import Ok
from ...storage.players import accounts, guests, restrictions, sessions
from ...storage.players.restrictions import Suspension
from ...storage.players.sessions import Begun
from ..route import Json, post, put
from ..shared_cache import CoalescingCache
from .accounts import REGISTER_ERRORS


@dataclass(frozen=True, kw_only=True)
class Guests:
    """Creates guests, signs them in, and makes them players.

    `limit` counts new guests, and `auth_limit` all logins. Without `limit` new guests are refused.
    """

    tag: ClassVar[str] = "guests"

    database: Database
    passwords: Passwords
    tokens: Tokens
    limiter: RateLimiter
    auth_limit: Limit
    limit: Limit | None
    recent: CoalescingCache[list[Recent]]
    bus: Bus
    now: Callable[[], datetime]
    new_id: Callable[[], str]

    @post(
        "/api/auth/guest",
        name="guest",
        private=True,
        limit=AUTH,
        body=Json(GuestRequest, optional=True),
        errors=("guest_gone", "guest_unknown", "guests_off", "suspended"),
    )
    async def begin(self, *, body: GuestRequest, address: str, user_agent: str | None) -> GuestPair:
        """Create an account without a password, and begin a session.

        With a `guest_key`, the first request creates the guest, and every later one signs in to the same guest.
        """
        key = None if body.guest_key is None else digest(body.guest_key)
        if (known := await self._sign_in(key, user_agent)) is not None:
            return known
        if not body.create:
            raise NotFound("guest_unknown", "no guest has this key")
        await self._admit(address)
        while True:  # another request may store the key first, and a player may have registered the name
            pair = await self._create(key, user_agent) or await self._sign_in(key, user_agent)
            if pair is not None:
                return pair

    @put(
        "/api/me/guest-key",
        name="change_guest_key",
        protected=True,
        limit=PASSWORD,
        errors=("guest_gone", "invalid_credentials", "not_a_guest", "user_not_found"),
    )
    async def change_key(self, *, player: str, session: SessionRef, body: GuestKeyChange) -> Ok:
        """Give the guest a key, or another key, which ends all its other sessions."""
        key = digest(body.guest_key)
        former = None if body.former_key is None else digest(body.former_key)
        if await self.database.transact(self._change_key, player, session, key, former):
            audit("guest key changed", user_id=player)
            self.bus.publish(SessionsEnded(player))
        return Ok()

    @post(
        "/api/me/claim",
        protected=True,
        limit=AUTH,
        limit_by_address=True,
        errors=(*REGISTER_ERRORS, "not_a_guest", "user_not_found"),
    )
    async def claim(self, *, player: str, session: SessionRef, body: ClaimRequest) -> Me:
        """Give the guest a username and a password. The account, this session and the progress stay.

        The same request again, with the same name and password, has the same answer.
        """
        username = check_username(body.username)
        password = check_new_password(body.password)
        self.passwords.require_room()
        if not existing(await self.database.run(guests.is_guest, player)):
            return await self._claim_again(player, username, password)
        if await self._is_taken(username, player):  # before the expensive hash; the update decides
            raise _taken()
        password_hash = await self.passwords.hash(password)
        work = self.database.transact(self._claim, player, session, username, password_hash, listing=body.list_replays)
        try:
            claimed = await work
        except DatabaseError:
            if await self._is_taken(username, player):
                raise _taken() from None
            raise  # the outcome may be unknown, and the claim may have succeeded
        if not claimed:
            return await self._claim_again(player, username, password)
        if body.list_replays:
            self.recent.invalidate()
        audit("register", user_id=player, reason="a guest")
        self.bus.publish(SessionsEnded(player))
        return me(player, username, None)

    async def _sign_in(self, key: bytes | None, user_agent: str | None) -> GuestPair | None:
        """Begin a session of the guest with this key; None without a key, or if no guest has had it.

        Raises Conflict if the key is gone, and AccountSuspended.
        """
        while key is not None:  # a claim, a join or a deletion may have committed since the guest was found
            holder = await self.database.run(guests.holder, key)
            if holder is None:
                break
            if holder.id is None:
                raise guest_gone()
            record = self.tokens.record(self.now(), user_agent)
            begun = await self.database.run(self._begin, holder.id, key, record)
            if isinstance(begun, Suspension):
                audit("login failed", user_id=holder.id, reason="suspended")
                raise suspension_error(begun.until, begun.message, begun.behind)
            if begun is not None:
                audit("login", user_id=holder.id, reason="a guest's key")
                if begun.ended:
                    self.bus.publish(SessionsEnded(holder.id))
                pair = self.tokens.pair(holder.id, record.issued(begun.expiry))
                return _with_guest(pair, holder.id, holder.username, created=False)
        return None

    async def _begin(
        self, statements: Statements, guest: str, key: bytes, record: RefreshRecord
    ) -> Begun | Suspension | None:
        begun = await sessions.begin_of_guest(statements, guest, record, key=key)
        return begun or await restrictions.suspension(statements, guest)

    async def _admit(self, address: str) -> None:
        """Count a new guest of this address; a refused one doesn't count as a login."""
        if self.limit is None:
            raise Forbidden("guests_off", "this service takes no new guests")
        try:
            await self.limiter.admit(self.limit, address)
        except TooMany:
            await self.limiter.give_back(self.auth_limit, address)
            raise

    async def _create(self, key: bytes | None, user_agent: str | None) -> GuestPair | None:
        """Create a guest; None if its name is taken, or another request has used the key first."""
        user_id, username, now = self.new_id(), new_username(), self.now()
        record = self.tokens.record(now, user_agent)
        try:
            created = await self.database.run(
                guests.register,
                user_id=user_id,
                username=username,
                password_hash=self.passwords.hash_of_guest(),
                now=now,
                record=record,
                key=key,
            )
        except DatabaseError:
            if key is None or await self.database.run(guests.holder, key) is None:
                raise
            return None
        if not created:
            return None
        audit("guest", user_id=user_id)
        pair = self.tokens.pair(user_id, record)
        if key is None:
            return GuestPair(pair.access_token, pair.refresh_token)
        return _with_guest(pair, user_id, username, created=True)

    async def _change_key(
        self, transaction: Transaction, player: str, session: SessionRef, key: bytes, former: bytes | None
    ) -> bool:
        """Set the key of a guest; return whether it has replaced another, and so ended sessions."""
        token = await self._lock_session(transaction, player, session)
        if not existing(await guests.is_guest(transaction, player)):
            raise not_a_guest()
        known = await guests.key_of(transaction, player)
        if known == key:
            return False
        if known is not None:
            if known != former:
                audit("guest key refused", user_id=player)
                raise Unauthorized("invalid_credentials", "invalid credentials")
            await guests.retire_key(transaction, player)
            await sessions.end_others(transaction, player, token)
        if not await guests.set_key(transaction, player, key):
            raise guest_gone()
        return known is not None

    async def _lock_session(self, transaction: Transaction, player: str, session: SessionRef) -> str:
        """Lock the player's row; return the refresh token of the session that the access token names.

        Raises NotFound without the player, and Unauthorized if the session has ended.
        """
        if not await accounts.lock(transaction, player):
            raise NotFound("user_not_found")
        token = await sessions.named_by(transaction, *session)
        if token is None:
            raise Unauthorized
        return token

    async def _is_taken(self, username: str, player: str) -> bool:
        """Return whether another player has this name."""
        owner = await self.database.run(accounts.credentials, username)
        return owner is not None and owner.user_id != player

    async def _claim(
        self,
        transaction: Transaction,
        player: str,
        session: SessionRef,
        username: str,
        password_hash: str,
        *,
        listing: bool,
    ) -> bool:
        """Make a guest a player, and end its other sessions; False if the account isn't a guest."""
        token = await self._lock_session(transaction, player, session)
        former = await guests.claim(transaction, player, username, password_hash)
        if former is None:
            return False
        await guests.rename_events(transaction, player, names_of_rename(former, username))
        await sessions.end_others(transaction, player, token)
        if listing:
            await guests.list_replays(transaction, player)
        return True

    async def _claim_again(self, player: str, username: str, password: bytes) -> Me:
        """Answer a claim of a player who has this name and password already; raises Conflict for any other."""
        await self.limiter.admit(PASSWORD, player)
        profile = existing(await self.database.run(accounts.profile, player))
        stored = existing(await self.database.run(accounts.credentials_of, player))
        if profile.username != username or not await self.passwords.verify(
            password, stored.password_hash, cut=stored.password_cut
        ):
            audit("claim refused", user_id=player)
            raise not_a_guest()
        return me(player, username, profile.avatar_extension)


def _with_guest(pair: TokenPair, guest: str, username: str | None, *, created: bool) -> GuestPair:
    player = Identity(guest, username or "", guest=True)
    return GuestPair(pair.access_token, pair.refresh_token, player, created=created)


def _taken() -> Conflict:
    return Conflict("username_taken", "username already taken")
