"""New passwords over HTTP: changing the password, recovery codes and reset links.

See docs/protocol.md "Sessions" and "Lost passwords", docs/security.md "Lost passwords".
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...access.passwords import Passwords
from ...access.rate_limit import AUTH, PASSWORD
from ...access.tokens import Tokens
from ...errors import AccountSuspended, Code, Unauthorized, existing
from ...events.bus import Bus
from ...events.notices import SessionsEnded
from ...postgres.database import Database
from ...postgres.transaction import Transaction
from ...process.audit import audit
from ...process.metrics import Metrics
from ...rules.accounts import PASSWORD_MAX_BYTES, TokenPair, check_new_password, username_to_look_up
from ...rules.administration import suspension_error
from ...rules.recovery import (
    CODE_DIGITS,
    CodesLeft,
    CodesRequest,
    Recovery,
    RecoveryCodes,
    Reset,
    digest,
    new_codes,
    read_code,
)
from ...rules.sessions import PasswordChange, RefreshRecord
from ...storage.players import accounts, recovery, restrictions, sessions
from ...storage.players.accounts import Credentials, Player
from ..route import get, post, put

PASSWORD_ERRORS: tuple[Code, ...] = ("password_length", "password_too_long", "invalid_credentials")
RECOVERY_ERRORS: tuple[Code, ...] = ("username_characters", *PASSWORD_ERRORS)


@dataclass(frozen=True, slots=True)
class Renewed:
    """The player with the new password, and the tokens of the new session."""

    username: str
    pair: TokenPair


@dataclass(frozen=True, kw_only=True)
class NewPasswords:
    """Replaces passwords for players who know the current one, have a recovery code, or have a reset link."""

    tag: ClassVar[str] = "accounts"

    database: Database
    passwords: Passwords
    tokens: Tokens
    metrics: Metrics
    bus: Bus
    now: Callable[[], datetime]

    @put(
        "/api/me/password",
        name="change_password",
        summary="Change the password, end all sessions, and begin a new one",
        protected=True,
        for_guests=False,
        limit=PASSWORD,
        errors=(*PASSWORD_ERRORS, "user_not_found"),
    )
    async def change(self, *, player: str, body: PasswordChange, user_agent: str | None) -> TokenPair:
        """Replace the password, end all sessions and begin a new one."""
        new, current = check_new_password(body.new_password), body.current_password.encode()
        stored = await self._stored(player, current)
        old = stored.password_hash
        replacement = await self.passwords.replace(current, old, new, cut=stored.password_cut)
        if replacement is None:
            raise _wrong(player)
        record = self.tokens.record(self.now(), user_agent)
        expiry = await self.database.transact(self._change, player, old, replacement, record)
        audit("password changed", user_id=player)
        self.bus.publish(SessionsEnded(player))
        return self.tokens.pair(player, record.issued(expiry))

    @post(
        "/api/me/recovery-codes",
        name="make_recovery_codes",
        summary="Make recovery codes, which replace all earlier ones",
        protected=True,
        for_guests=False,
        limit=PASSWORD,
        errors=("invalid_credentials", "user_not_found"),
    )
    async def make_codes(self, *, player: str, body: CodesRequest) -> RecoveryCodes:
        """Replace the player's recovery codes with new ones, which no later request returns."""
        current = body.current_password.encode()
        stored = await self._stored(player, current)
        if not await self.passwords.verify(current, stored.password_hash, cut=stored.password_cut):
            raise _wrong(player)
        codes = new_codes()
        digests = [digest(code.replace("-", "")) for code in codes]
        made_at = await self.database.run(recovery.replace_codes, player, digests, verified_hash=stored.password_hash)
        if made_at is None:
            raise _refused()
        audit("recovery codes made", user_id=player)
        return RecoveryCodes(codes, made_at)

    @get(
        "/api/me/recovery-codes",
        name="recovery_codes_left",
        summary="Show the number of unused recovery codes",
        protected=True,
        errors=("user_not_found",),
    )
    async def codes_left(self, *, player: str) -> CodesLeft:
        """Return the number of recovery codes, and the time when they were made."""
        return existing(await self.database.run(recovery.codes_left, player))

    @post(
        "/api/auth/recover",
        summary="Set a new password with a recovery code, and begin a session",
        private=True,
        limit=AUTH,
        errors=(*RECOVERY_ERRORS, "suspended"),
    )
    async def recover(self, *, body: Recovery, user_agent: str | None) -> TokenPair:
        """Set a new password with a recovery code. Work and reply are the same for all causes of a refusal."""
        return (await self.renew_by_code(body, user_agent)).pair

    @post(
        "/api/auth/reset",
        summary="Set a new password with the token of a reset link, and begin a session",
        private=True,
        limit=AUTH,
        errors=(*PASSWORD_ERRORS, "suspended"),
    )
    async def reset(self, *, body: Reset, user_agent: str | None) -> TokenPair:
        """Set a new password with a reset link's token. Work and reply are the same for all causes of a refusal."""
        return (await self.renew_by_link(body, user_agent)).pair

    async def renew_by_code(self, body: Recovery, user_agent: str | None) -> Renewed:
        """Do the work of `recover`, and also return the player's name."""
        new = check_new_password(body.new_password)
        username, code = username_to_look_up(body.username), read_code(body.code, CODE_DIGITS)
        replacement = await self.passwords.hash(new)
        record = self.tokens.record(self.now(), user_agent)
        player, expiry = await self.database.transact(self._recover, username or "", code or "", replacement, record)
        self.metrics.logins.labels("recovered").inc()
        audit("password recovered", user_id=player.id)
        return self._renewed(player, record, expiry)

    async def renew_by_link(self, body: Reset, user_agent: str | None) -> Renewed:
        """Do the work of `reset`, and also return the player's name."""
        replacement = await self.passwords.hash(check_new_password(body.new_password))
        record = self.tokens.record(self.now(), user_agent)
        player, expiry = await self.database.transact(self._reset, body.token, replacement, record)
        self.metrics.logins.labels("reset").inc()
        audit("password reset", user_id=player.id, reason="by a link")
        return self._renewed(player, record, expiry)

    async def _stored(self, player: str, current: bytes) -> Credentials:
        """The stored credentials of a player; raises NotFound, or Unauthorized for a password longer than allowed."""
        self.passwords.require_room()
        stored = existing(await self.database.run(accounts.credentials_of, player))
        if len(current) > PASSWORD_MAX_BYTES:
            raise _wrong(player)
        return stored

    def _renewed(self, player: Player, record: RefreshRecord, expiry: int) -> Renewed:
        self.bus.publish(SessionsEnded(player.id))
        return Renewed(player.username, self.tokens.pair(player.id, record.issued(expiry)))

    # These methods return the `exp` of the new session's access token.

    async def _change(
        self, transaction: Transaction, player: str, verified: str, replacement: str, record: RefreshRecord
    ) -> int:
        if not await accounts.change_password(transaction, player, verified_hash=verified, password_hash=replacement):
            audit("password change refused", user_id=player, reason="changed by another request")
            raise _refused()
        return await self._begin_anew(transaction, player, replacement, record)

    async def _recover(
        self, transaction: Transaction, username: str, code: str, replacement: str, record: RefreshRecord
    ) -> tuple[Player, int]:
        attempt = await recovery.spend_code(transaction, username, digest(code), replacement)
        if attempt is None or not attempt.spent:
            raise self._recovery_refused("no such code", None if attempt is None else attempt.id)
        player = Player(attempt.id, username)
        return player, await self._begin_recovered(transaction, player.id, replacement, record)

    async def _reset(
        self, transaction: Transaction, token: str, replacement: str, record: RefreshRecord
    ) -> tuple[Player, int]:
        player = await recovery.spend_token(transaction, digest(token), replacement)
        if player is None:
            raise self._recovery_refused("no such link", None)
        return player, await self._begin_recovered(transaction, player.id, replacement, record)

    async def _begin_recovered(
        self, transaction: Transaction, player: str, replacement: str, record: RefreshRecord
    ) -> int:
        try:
            return await self._begin_anew(transaction, player, replacement, record)
        except AccountSuspended:
            self.metrics.logins.labels("suspended").inc()
            audit("recovery refused", user_id=player, reason="suspended")
            raise

    async def _begin_anew(self, transaction: Transaction, player: str, replacement: str, record: RefreshRecord) -> int:
        """End all sessions of a player with a new password, and begin a new one.

        Raises AccountSuspended for a suspended player; the transaction then changes nothing.
        """
        await sessions.end_all(transaction, player)
        begun = await sessions.begin(transaction, player, record, verified_hash=replacement)
        if begun is None:
            suspension = await restrictions.suspension(transaction, player)
            assert suspension is not None, "nothing else keeps a player from a session whose row is locked"
            raise suspension_error(suspension.until, suspension.message, suspension.behind)
        return begun.expiry

    def _recovery_refused(self, reason: str, user_id: str | None) -> Unauthorized:
        """Count and log an attempt with a wrong, spent or expired code or token; return the error."""
        self.metrics.logins.labels("recovery_refused").inc()
        audit("recovery refused", user_id=user_id, reason=reason)
        return _refused()


def _refused() -> Unauthorized:
    return Unauthorized("invalid_credentials", "invalid credentials")


def _wrong(player: str) -> Unauthorized:
    """Log that the current password was wrong; return the error."""
    audit("password change refused", user_id=player)
    return _refused()
