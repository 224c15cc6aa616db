"""Sessions of browsers over HTTP (docs/protocol.md "Sessions of browsers").

These routes wrap the routes of accounts, sessions and new passwords. The refresh token is in a cookie instead of the
body.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...access.rate_limit import AUTH, PASSWORD
from ...access.tokens import Tokens
from ...errors import Code, Unauthorized
from ...postgres.database import Database
from ...rules.accounts import LogoutRequest, RefreshRequest, TokenPair
from ...rules.browser_sessions import BrowserLogin, BrowserRefresh, BrowserSession, SessionCookie
from ...rules.recovery import Recovery, Reset
from ...rules.sessions import PasswordChange
from ...rules.shapes import Ok
from ...storage import accounts
from ..resources.new_passwords import PASSWORD_ERRORS, RECOVERY_ERRORS
from ..route import Json, delete, post, put
from ..wire.reply import Reply
from .accounts import Accounts
from .new_passwords import NewPasswords
from .sessions import Sessions, Superseded

LOGIN_ERRORS: tuple[Code, ...] = (
    "username_length",
    "username_characters",
    "password_length",
    "password_too_long",
    "username_taken",
    "invalid_credentials",
    "suspended",
)


@dataclass(frozen=True, kw_only=True)
class BrowserSessions:
    """Keeps the refresh token of a page in a cookie that no script can read."""

    tag: ClassVar[str] = "browsers"

    database: Database
    tokens: Tokens
    accounts: Accounts
    sessions: Sessions
    new_passwords: NewPasswords
    now: Callable[[], datetime]

    @post(
        "/api/session",
        name="browser_login",
        summary="Begin a session of a browser, and register the player first on request",
        same_origin=True,
        limit=AUTH,
        answer=BrowserSession,
        errors=LOGIN_ERRORS,
    )
    async def begin(self, *, body: BrowserLogin, cookie: SessionCookie, user_agent: str | None) -> Reply:
        """Begin a session, optionally of a new player; it replaces and ends the browser's former session."""
        begin = self.accounts.register if body.register else self.sessions.login
        pair = await begin(body=body, user_agent=user_agent)
        # ends the former session last, because the browser needs it until it has the new cookie
        await self._end_session(cookie)
        return _reply(pair, body.username.strip(), cookie)

    @post(
        "/api/session/refresh",
        name="browser_refresh",
        summary="Exchange the cookie for a new one and an access token",
        same_origin=True,
        limit=AUTH,
        body=Json(BrowserRefresh, optional=True),
        answer=BrowserSession,
        errors=("unauthorized",),
    )
    async def refresh(
        self, *, body: BrowserRefresh, cookie: SessionCookie, user_agent: str | None, client: str
    ) -> Reply:
        """Exchange the cookie for a new one and an access token.

        A cookie that can't be spent is removed, unless another tab has just spent it. In that case the browser has or
        will soon receive the new cookie.
        """
        token = cookie.token or ""
        try:
            # looks up the name before the token is spent, because a failure in between would lose the session
            username = await self._username_of(token)
            spending = RefreshRequest(token, retry_key=body.retry_key)
            pair = await self.sessions.refresh(body=spending, user_agent=user_agent, client=client)
        except Superseded:
            raise
        except Unauthorized as error:
            headers = {"Set-Cookie": cookie.cleared, "WWW-Authenticate": "Bearer"}
            return Reply.error(error.code, str(error), headers)
        return _reply(pair, username, cookie)

    @put(
        "/api/session/password",
        name="browser_change_password",
        summary="Change the password, end all sessions, and begin a new one in this browser",
        protected=True,
        for_guests=False,
        same_origin=True,
        limit=PASSWORD,
        answer=BrowserSession,
        errors=(*PASSWORD_ERRORS, "user_not_found"),
    )
    async def change_password(
        self, *, player: str, body: PasswordChange, cookie: SessionCookie, user_agent: str | None
    ) -> Reply:
        """Replace the password, end all sessions and begin a new one."""
        username = await self._username(player)  # before anything changes, as in `refresh`
        pair = await self.new_passwords.change(player=player, body=body, user_agent=user_agent)
        return _reply(pair, username, cookie)

    @post(
        "/api/session/recover",
        name="browser_recover",
        summary="Set a new password with a recovery code, and begin a session in this browser",
        same_origin=True,
        limit=AUTH,
        answer=BrowserSession,
        errors=(*RECOVERY_ERRORS, "suspended"),
    )
    async def recover(self, *, body: Recovery, cookie: SessionCookie, user_agent: str | None) -> Reply:
        """Set a new password with a recovery code, and begin a session."""
        renewed = await self.new_passwords.renew_by_code(body, user_agent)
        await self._end_session(cookie)  # last, as in `begin`
        return _reply(renewed.pair, renewed.username, cookie)

    @post(
        "/api/session/reset",
        name="browser_reset",
        summary="Set a new password with the token of a reset link, and begin a session in this browser",
        same_origin=True,
        limit=AUTH,
        answer=BrowserSession,
        errors=(*PASSWORD_ERRORS, "suspended"),
    )
    async def reset(self, *, body: Reset, cookie: SessionCookie, user_agent: str | None) -> Reply:
        """Set a new password with the token of a reset link, and begin a session."""
        renewed = await self.new_passwords.renew_by_link(body, user_agent)
        await self._end_session(cookie)
        return _reply(renewed.pair, renewed.username, cookie)

    @delete(
        "/api/session",
        name="browser_logout",
        summary="End the session of the cookie, and delete the cookie",
        same_origin=True,
        answer=Ok,
    )
    async def end(self, *, cookie: SessionCookie) -> Reply:
        """End the session of the cookie, if any, and delete the cookie."""
        await self._end_session(cookie)
        return Reply.of(Ok()).with_headers({"Set-Cookie": cookie.cleared})

    async def _end_session(self, cookie: SessionCookie) -> None:
        if cookie.token is not None:
            with suppress(Unauthorized):
                await self.sessions.logout(body=LogoutRequest(cookie.token))

    async def _username_of(self, token: str) -> str:
        """The username of a refresh token's player; "" for a token that can't be spent."""
        try:
            claims = self.tokens.read_refresh(token, self.now())
        except Unauthorized:
            return ""
        return await self._username(claims.user_id)

    async def _username(self, player: str) -> str:
        profile = await self.database.run(accounts.profile, player)
        return profile.username or "" if profile else ""


def _reply(pair: TokenPair, username: str, cookie: SessionCookie) -> Reply:
    session = BrowserSession(pair.access_token, username)
    return Reply.of(session).with_headers({"Set-Cookie": cookie.holding(pair.refresh_token)})
