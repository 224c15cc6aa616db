"""Sessions over HTTP: login, refresh, logout, and the list of sessions.

See docs/protocol.md "Sessions", docs/security.md "Tokens and sessions".
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from ...access.passwords import Passwords
from ...access.rate_limit import AUTH, Limit, RateLimiter
from ...access.tokens import RefreshClaims, Tokens
from ...errors import NotFound, Unauthorized, Unavailable, existing
from ...events.bus import Bus
from ...events.notices import SessionsEnded
from ...postgres.database import Database
from ...postgres.transaction import Statements
from ...process.audit import audit
from ...process.metrics import Metrics
from ...rules.accounts import (
    PASSWORD_MAX_BYTES,
    AuthRequest,
    Identity,
    IssuedPair,
    LogoutRequest,
    RefreshRequest,
    TokenPair,
    username_to_look_up,
)
from ...rules.administration import suspension_error
from ...rules.sessions import RefreshRecord, Session, SessionRef
from ...rules.shapes import Ok, is_id
from ...storage import rate_limits
from ...storage.players import accounts, restrictions, sessions
from ...storage.players.restrictions import Suspension
from ...storage.players.sessions import Begun
from ..route import delete, get, post
from ..wire.reply import Reply


class Superseded(Unauthorized):
    """A refresh token was spent, and its session continues under a newer one."""


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """Begins, refreshes, lists and ends the sessions of players; `limit` counts refreshes."""

    tag: ClassVar[str] = "sessions"

    database: Database
    passwords: Passwords
    tokens: Tokens
    limiter: RateLimiter
    limit: Limit
    metrics: Metrics
    bus: Bus
    now: Callable[[], datetime]

    @post(
        "/api/auth/login",
        summary="Begin a session",
        private=True,
        limit=AUTH,
        errors=("invalid_credentials", "username_characters", "suspended"),
    )
    async def login(self, *, body: AuthRequest, user_agent: str | None) -> TokenPair:
        """Begin a session. Work and reply are the same for all wrong credentials.

        A request with the same `retry_key`, name and password receives the same pair again, until the session is
        refreshed.
        """
        return (await self.sign_in(body, user_agent, "login")).pair

    async def sign_in(self, body: AuthRequest, user_agent: str | None, route: str) -> IssuedPair:
        """Do the work of `login`; requests to another `route` aren't equal."""
        username = username_to_look_up(body.username)
        password = body.password.encode()
        self.passwords.require_room()
        stored = await self.database.run(accounts.credentials, username) if username is not None else None
        if len(password) > PASSWORD_MAX_BYTES:
            password, stored = b"", None
        against, cut = (stored.password_hash, stored.password_cut) if stored else (None, False)
        if not await self.passwords.verify(password, against, cut=cut) or stored is None:
            self._attempted("wrong", stored.user_id if stored else None)
            raise Unauthorized("invalid_credentials", "invalid credentials")
        digest = self.tokens.retry_digest(f"{route} {username}", body.retry_key)
        wanted = self.tokens.record(self.now(), user_agent, digest)
        record = await self._begin(stored, wanted)
        player = Identity(stored.user_id, username or "", guest=False)
        return IssuedPair(self.tokens.signed_in(player, record), repeated=record.jti != wanted.jti)

    @post(
        "/api/auth/refresh",
        summary="Exchange a refresh token for a new pair of tokens",
        counts_itself=True,
        private=True,
        limit=AUTH,
        errors=("unauthorized",),
    )
    async def refresh(self, *, body: RefreshRequest, user_agent: str | None, client: str) -> TokenPair:
        """Exchange a refresh token for a new pair of tokens; of any number of requests with one token, one succeeds.

        A request with the same token and the same `retry_key` receives the same pair again, until the new token is
        spent.
        """
        return (await self.exchange(body, user_agent, client))[0]

    async def exchange(self, body: RefreshRequest, user_agent: str | None, client: str) -> tuple[TokenPair, Identity]:
        """Do the work of `refresh`, and also return the player."""
        now = self.now()
        try:
            claims = self.tokens.read_refresh(body.refresh_token, now)
        except Unauthorized:
            await self.limiter.admit(self.limit, client)
            audit("refresh refused", reason="no valid refresh token")
            raise
        record = self.tokens.record(now, user_agent, self.tokens.retry_digest(claims.jti, body.retry_key))
        stored, player = await self.database.run(self._rotate, claims, record, now, client)
        return self.tokens.signed_in(player, stored), player

    @post("/api/auth/logout", summary="End the session of a refresh token", private=True, errors=("unauthorized",))
    async def logout(self, *, body: LogoutRequest) -> Ok:
        """End the session of a refresh token; a spent token ends nothing."""
        claims = self.tokens.read_refresh(body.refresh_token, self.now())
        if await self.database.run(sessions.log_out, claims.user_id, claims.jti):
            audit("logged out", user_id=claims.user_id)
            self.bus.publish(SessionsEnded(claims.user_id))
        return Ok()

    @get(
        "/api/sessions",
        name="sessions",
        summary="List the player's sessions, last used first",
        protected=True,
        answer=list[Session],
        errors=("user_not_found",),
    )
    async def list(self, *, player: str, session: SessionRef) -> Reply:
        """Return the player's live sessions, last used first."""
        return Reply.of(existing(await self.database.run(sessions.listed, *session)))

    @delete(
        "/api/sessions/{session_id}",
        name="end_session",
        summary="End a session of the player",
        protected=True,
        errors=("session_not_found", "user_not_found"),
    )
    async def end(self, *, player: str, session_id: str) -> Ok:
        """End one of the player's sessions. Its access token stays valid until it expires."""
        ended = existing(await self.database.run(sessions.end, player, session_id if is_id(session_id) else None))
        if not ended:
            raise NotFound("session_not_found")
        audit("session ended", user_id=player)
        self.bus.publish(SessionsEnded(player))
        return Ok()

    @delete(
        "/api/sessions",
        name="end_sessions",
        summary="End all sessions of the player, including this one",
        protected=True,
        errors=("user_not_found",),
    )
    async def end_all(self, *, player: str) -> Ok:
        """End all of the player's sessions."""
        count = existing(await self.database.run(sessions.end_all, player))
        if count:
            audit("sessions ended", user_id=player, reason=f"all {count} of them")
            self.bus.publish(SessionsEnded(player))
        return Ok()

    async def _begin(self, stored: accounts.Credentials, record: RefreshRecord) -> RefreshRecord:
        """Begin the session of a player whose password was right, unless an equal request has; return its record."""
        digest = record.retry_digest

        async def begin(statements: Statements) -> Begun | RefreshRecord | Suspension | None:
            before = None if digest is None else await sessions.begun(statements, stored.user_id, digest)
            return (
                before
                or await sessions.begin(statements, stored.user_id, record, verified_hash=stored.password_hash)
                or await restrictions.suspension(statements, stored.user_id)
            )

        # in a transaction, the lock of the player's row lets one of two equal requests wait for the other
        run = self.database.run if digest is None else self.database.transact
        begun = await run(begin)
        if isinstance(begun, RefreshRecord):
            audit("login repeated", user_id=stored.user_id)
            return begun
        if begun is None:
            self._attempted("wrong", stored.user_id)
            raise Unauthorized("invalid_credentials", "invalid credentials")
        if isinstance(begun, Suspension):
            self._attempted("suspended", stored.user_id)
            raise suspension_error(begun.until, begun.message, begun.behind)
        self._attempted("ok", stored.user_id)
        if begun.ended:
            self.bus.publish(SessionsEnded(stored.user_id))
        return record.issued(begun.expiry)

    def _attempted(self, outcome: Literal["ok", "wrong", "suspended"], user_id: str | None) -> None:
        """Count and log an attempt to log in."""
        self.metrics.logins.labels(outcome).inc()
        reason = "suspended" if outcome == "suspended" else None
        audit("login" if outcome == "ok" else "login failed", user_id=user_id, reason=reason)

    async def _rotate(
        self,
        statements: Statements,
        claims: RefreshClaims,
        record: RefreshRecord,
        now: datetime,
        client: str,
    ) -> tuple[RefreshRecord, Identity]:
        """Store the successor of a refresh token; return it as stored now, or by an earlier, equal request.

        Raises Unauthorized if the token can't be spent: Superseded if another request has spent it.
        """
        hit, spent = self.limit.hit(client), claims.jti
        try:
            wait, rotated = await sessions.rotate(statements, claims.user_id, record, spent=spent, now=now, hit=hit)
        except Unavailable:  # the statement failed, and so counted nothing
            self.limiter.settle(self.limit, client, await rate_limits.hit(statements, hit))
            raise
        self.limiter.settle(self.limit, client, wait)
        if rotated is not None:
            audit("refresh", user_id=claims.user_id)
            player = Identity(claims.user_id, rotated.username or "", rotated.guest)
            return record.issued(rotated.expiry), player
        successor = await sessions.successor(statements, claims.user_id, spent, record.retry_digest, now)
        if successor is not None and successor.repeatable:
            self.metrics.refresh_repeats.inc()
            audit("refresh repeated", user_id=claims.user_id)
            player = Identity(claims.user_id, successor.username, successor.guest)
            known = (successor.jti, successor.expires_at, successor.expiry)
            return RefreshRecord(*known, record.user_agent, record.retry_digest), player
        self.metrics.refresh_token_reuse.inc()
        audit("refresh refused", user_id=claims.user_id, reason="spent or revoked")
        raise Unauthorized if successor is None else Superseded
