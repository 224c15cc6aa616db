"""Sessions: login and refresh (contract §3)."""

from collections.abc import Callable
from datetime import datetime

from ..database import Database
from ..errors import Unauthorized
from ..passwords import Passwords
from ..rules.accounts import PASSWORD_MAX_BYTES, AuthRequest, RefreshRequest, TokenPair, username_to_look_up
from ..storage import accounts, sessions
from ..tokens import Tokens, refresh_expiry


class Sessions:
    """How a player gets in, and stays in."""

    def __init__(
        self,
        *,
        database: Database,
        passwords: Passwords,
        tokens: Tokens,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self._database = database
        self._passwords = passwords
        self._tokens = tokens
        self._now = now
        self._new_id = new_id

    async def login(self, *, body: AuthRequest) -> TokenPair:
        """Begin a session. Whatever is wrong with the credentials, the work and the answer are the same."""
        username = username_to_look_up(body.username)
        password = body.password.encode()
        stored = await self._database.once(accounts.credentials, username) if username is not None else None
        if len(password) > PASSWORD_MAX_BYTES:
            password, stored = b"", None
        if not await self._passwords.verify(password, stored.password_hash if stored else None) or stored is None:
            raise Unauthorized("invalid credentials")
        jti, now = self._new_id(), self._now()
        began = await self._database.once(
            sessions.begin,
            stored.user_id,
            verified_hash=stored.password_hash,
            jti=jti,
            expires=refresh_expiry(now),
        )
        if not began:
            raise Unauthorized("invalid credentials")
        return TokenPair(self._tokens.access(stored.user_id, now), self._tokens.refresh(stored.user_id, jti, now))

    async def refresh(self, *, body: RefreshRequest) -> TokenPair:
        """Spend a refresh token for a new pair; of any number of requests with one token, one gets it."""
        now = self._now()
        claims = self._tokens.read_refresh(body.refresh_token, now)
        jti = self._new_id()
        rotated = await self._database.once(
            sessions.rotate,
            claims.user_id,
            spent=claims.jti,
            now=now,
            jti=jti,
            expires=refresh_expiry(now),
        )
        if not rotated:
            raise Unauthorized
        return TokenPair(self._tokens.access(claims.user_id, now), self._tokens.refresh(claims.user_id, jti, now))
