"""Sessions of browsers over HTTP (docs/protocol.md "Sessions of browsers").

These routes wrap the routes of accounts, sessions and new passwords. The refresh token is in a cookie instead of the
body.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from ...access.rate_limit import AUTH, PASSWORD
from ...errors import Code, Unauthorized
from ...postgres.database import Database
from ...rules.accounts import LogoutRequest, RefreshRequest, TokenPair
from ...rules.browser_sessions import BrowserLogin, BrowserRefresh, BrowserSession, SessionCookie
from ...rules.recovery import Recovery, Reset
from ...rules.sessions import PasswordChange
from ...rules.shapes import Ok
from ...storage.players import accounts
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
    accounts: Accounts
    sessions: Sessions
    new_passwords: NewPasswords

    @post(
        "/api/session",
        name="browser_login",
        summary="Begin a session of a browser, and register the player first on request",
        same_origin=True,
        sets_cookie=True,
        limit=AUTH,
        answer=BrowserSession,
        errors=LOGIN_ERRORS,
    )
    async def begin(self, *, body: BrowserLogin, cookie: SessionCookie, user_agent: str | None) -> Reply:
        """Begin a session, optionally of a new player; it replaces and ends the browser's former session."""
        begin = self.accounts.sign_up if body.register else self.sessions.sign_in
        pair, repeated = await begin(body, user_agent, "session")
        # ends the former session last, because the browser needs it until it has the new cookie
        if not repeated:  # otherwise the cookie may be the answer to the equal request before
            await self._end_session(cookie)
        return _reply(pair, body.username.strip(), cookie)

    @post(
        "/api/session/refresh",
        name="browser_refresh",
        counts_itself=True,
        summary="Exchange the cookie for a new one and an access token",
        same_origin=True,
        sets_cookie=True,
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
        spending = RefreshRequest(cookie.token or "", retry_key=body.retry_key)
        try:
            pair, player = await self.sessions.exchange(spending, user_agent, client)
        except Superseded:
            raise
        except Unauthorized as error:
            headers = {"Set-Cookie": cookie.cleared, "WWW-Authenticate": "Bearer"}
            return Reply.error(error.code, str(error), headers)
        return _reply(pair, player.username, cookie)

    @put(
        "/api/session/password",
        name="browser_change_password",
        summary="Change the password, end all sessions, and begin a new one in this browser",
        protected=True,
        for_guests=False,
        same_origin=True,
        sets_cookie=True,
        limit=PASSWORD,
        answer=BrowserSession,
        errors=(*PASSWORD_ERRORS, "user_not_found"),
    )
    async def change_password(
        self, *, player: str, body: PasswordChange, cookie: SessionCookie, user_agent: str | None
    ) -> Reply:
        """Replace the password, end all sessions and begin a new one."""
        username = await self._username(player)  # first: a failure after the change would lose the session
        pair = await self.new_passwords.change(player=player, body=body, user_agent=user_agent)
        return _reply(pair, username, cookie)

    @post(
        "/api/session/recover",
        name="browser_recover",
        summary="Set a new password with a recovery code, and begin a session in this browser",
        same_origin=True,
        sets_cookie=True,
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
        sets_cookie=True,
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
        sets_cookie=True,
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

    async def _username(self, player: str) -> str:
        profile = await self.database.run(accounts.profile, player)
        return profile.username or "" if profile else ""


def _reply(pair: TokenPair, username: str, cookie: SessionCookie) -> Reply:
    session = BrowserSession(pair.access_token, username, pair.player)
    return Reply.of(session).with_headers({"Set-Cookie": cookie.holding(pair.refresh_token)})
