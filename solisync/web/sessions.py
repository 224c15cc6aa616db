"""Sessions over HTTP: login and refresh (docs/protocol.md "Sessions", docs/security.md "Tokens and sessions")."""

from collections.abc import Callable
from datetime import datetime

from ..access.passwords import Passwords
from ..access.tokens import Issued, RefreshClaims, Tokens
from ..errors import Unauthorized
from ..postgres.database import Database
from ..postgres.transaction import Transaction
from ..process.audit import audit
from ..process.metrics import Metrics
from ..rules.accounts import PASSWORD_MAX_BYTES, AuthRequest, RefreshRequest, TokenPair, username_to_look_up
from ..storage import accounts, sessions


class Sessions:
    """Login and refresh-token rotation."""

    def __init__(
        self,
        *,
        database: Database,
        passwords: Passwords,
        tokens: Tokens,
        metrics: Metrics,
        now: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._passwords = passwords
        self._tokens = tokens
        self._metrics = metrics
        self._now = now

    async def login(self, *, body: AuthRequest) -> TokenPair:
        """Begin a session. The work and the reply are the same whatever is wrong with the credentials."""
        username = username_to_look_up(body.username)
        password = body.password.encode()
        self._passwords.require_room()
        stored = await self._database.autocommit(accounts.credentials, username) if username is not None else None
        if len(password) > PASSWORD_MAX_BYTES:
            password, stored = b"", None
        if not await self._passwords.verify(password, stored.password_hash if stored else None) or stored is None:
            audit("login failed", user_id=stored.user_id if stored else None)
            raise Unauthorized("invalid_credentials", "invalid credentials")
        issued = self._tokens.issue(stored.user_id, self._now())
        if not await self._database.autocommit(self._begin, stored, issued):
            raise Unauthorized("invalid_credentials", "invalid credentials")
        return issued.pair

    async def refresh(self, *, body: RefreshRequest) -> TokenPair:
        """Exchange a refresh token for a new pair of tokens; of any number of requests with one token, one succeeds."""
        now = self._now()
        try:
            claims = self._tokens.read_refresh(body.refresh_token, now)
        except Unauthorized:
            audit("refresh refused", reason="no valid refresh token")
            raise
        issued = self._tokens.issue(claims.user_id, now)
        if not await self._database.autocommit(self._rotate, claims, issued, now):
            raise Unauthorized
        return issued.pair

    # The database runs these to their end even if the client has gone, so the audit trail is written here.

    async def _begin(self, transaction: Transaction, stored: accounts.Credentials, issued: Issued) -> bool:
        began = await sessions.begin(
            transaction, stored.user_id, verified_hash=stored.password_hash, jti=issued.jti, expires=issued.expires
        )
        audit("login" if began else "login failed", user_id=stored.user_id)
        return began

    async def _rotate(self, transaction: Transaction, claims: RefreshClaims, issued: Issued, now: datetime) -> bool:
        rotated = await sessions.rotate(
            transaction, claims.user_id, spent=claims.jti, now=now, jti=issued.jti, expires=issued.expires
        )
        if rotated:
            audit("refresh", user_id=claims.user_id)
        else:
            self._metrics.refresh_token_reuse.inc()
            audit("refresh refused", user_id=claims.user_id, reason="spent or revoked")
        return rotated
