"""Accounts over HTTP: registration, profile, deletion.

See docs/protocol.md "Sessions", "The player", "Deleting an account".
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...access.passwords import Passwords
from ...access.rate_limit import AUTH
from ...access.tokens import Tokens
from ...acts.large_accounts import erase, settle
from ...errors import Code, Conflict, existing
from ...events.bus import Bus
from ...events.notices import SessionsEnded, boards_changed
from ...postgres.database import Database
from ...process.audit import audit
from ...rules.accounts import (
    AuthRequest,
    Identity,
    IssuedPair,
    Me,
    TokenPair,
    check_new_password,
    check_username,
    me,
)
from ...rules.replay_lists import Recent
from ...rules.shapes import Ok
from ...storage.operators import large_accounts
from ...storage.players import accounts, sessions
from ...storage.replays import boards
from ..route import delete, get, post
from ..shared_cache import CoalescingCache
from ..wire.reply import Reply

REGISTER_ERRORS: tuple[Code, ...] = (
    "username_length",
    "username_characters",
    "password_length",
    "password_too_long",
    "username_taken",
)


@dataclass(frozen=True, kw_only=True)
class Accounts:
    """Registration, profile and deletion of a player."""

    tag: ClassVar[str] = "accounts"

    database: Database
    passwords: Passwords
    tokens: Tokens
    board: CoalescingCache[Reply]
    recent: CoalescingCache[list[Recent]]
    bus: Bus
    now: Callable[[], datetime]
    new_id: Callable[[], str]

    @post("/api/auth/register", private=True, limit=AUTH, errors=REGISTER_ERRORS)
    async def register(self, *, body: AuthRequest, user_agent: str | None) -> TokenPair:
        """Create an account and begin its first session.

        A request with the same `retry_key`, name and password receives the same pair again, until the session is
        refreshed.
        """
        return (await self.sign_up(body, user_agent, "register")).pair

    async def sign_up(self, body: AuthRequest, user_agent: str | None, route: str) -> IssuedPair:
        """Do the work of `register`; requests to another `route` aren't equal."""
        username = check_username(body.username)
        password = check_new_password(body.password)
        digest = self.tokens.retry_digest(f"{route} {username}", body.retry_key)
        self.passwords.require_room()
        if await self.database.run(accounts.is_taken, username):  # before the expensive hash; the insert decides
            return await self._signed_up(username, password, digest)
        password_hash = await self.passwords.hash(password)
        user_id, now = self.new_id(), self.now()
        record = self.tokens.record(now, user_agent, digest)
        created = await self.database.run(
            accounts.register,
            user_id=user_id,
            username=username,
            password_hash=password_hash,
            now=now,
            record=record,
        )
        if not created:
            return await self._signed_up(username, password, digest)
        audit("register", user_id=user_id)
        player = Identity(user_id, username, guest=False)
        return IssuedPair(self.tokens.signed_in(player, record), repeated=False)

    async def _signed_up(self, username: str, password: bytes, digest: bytes | None) -> IssuedPair:
        """The session that an equal request has begun; raises Conflict without one, or for another password."""
        taken = Conflict("username_taken", "username already taken")
        if digest is None:
            raise taken
        stored = await self.database.run(accounts.credentials, username)
        begun = None if stored is None else await self.database.run(sessions.begun, stored.user_id, digest)
        if stored is None or begun is None or not await self.passwords.verify(password, stored.password_hash):
            raise taken
        audit("login repeated", user_id=stored.user_id)
        player = Identity(stored.user_id, username, guest=False)
        return IssuedPair(self.tokens.signed_in(player, begun), repeated=True)

    @get("/api/me", summary="Show the player's profile", protected=True, errors=("user_not_found",))
    async def me(self, *, player: str) -> Me:
        """Return the player's profile."""
        profile = existing(await self.database.run(accounts.profile, player))
        return me(player, profile.username, profile.avatar_extension, profile.guest)

    @delete("/api/account", name="delete_account", summary="Delete the account and all its data", protected=True)
    async def delete(self, *, player: str) -> Ok:
        """Delete the account with all of the player's data; no error if it was deleted before."""
        with self.board.changing(), self.recent.changing():
            deleted, changed = await self.database.transact(boards.changed_by, player, erase, player)
        if deleted:
            self.board.invalidate()
            self.recent.invalidate()
            audit("account deleted", user_id=player)
            self.bus.publish(SessionsEnded(player), *boards_changed(changed, with_player=True))
            waiting = await self.database.run(large_accounts.waiting_of, player)
            if waiting is not None:
                await settle(self.database, self.bus.publish, waiting)
        return Ok()
