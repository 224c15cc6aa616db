"""The routes of pages for players, and of their sessions (docs/pages.md)."""

from collections.abc import Awaitable, Callable
from typing import Any

from ...access.rate_limit import PASSWORD, Limit
from ...errors import Code
from ...rules.browser_sessions import BrowserLogin, BrowserSession
from ...rules.recovery import Recovery, Reset
from ...rules.sessions import PasswordChange
from ...rules.shapes import Ok
from ..resources import Resources
from ..resources.browser_sessions import LOGIN_ERRORS
from ..resources.new_passwords import PASSWORD_ERRORS, RECOVERY_ERRORS
from ..route import Content, Json, Route, delete, get, post, put


def pages(resources: Resources, auth_limit: Limit) -> tuple[Route, ...]:
    """HTML, scripts and styles; and the sessions of browsers, which share `auth_limit` with all others."""
    html = resources.pages
    return (
        _page("/", "home_page", html.home, "What this is, the deal of the day and the newest wins"),
        _page("/play", "play_page", html.static("play"), "A game to play"),
        _page("/replays", "replays_page", html.static("replays"), "The newest replays"),
        _page("/replays/{replay_id}", "replay_page", html.replay, "A replay, to watch", "replay_not_found"),
        _page("/leaderboard", "leaderboard_page", html.static("leaderboard"), "The best players"),
        _page("/daily", "daily_page", html.today, "The deal of the day"),
        _page("/daily/{day}", "day_page", html.day, "The deal of a day", "day_not_found"),
        _page("/players/{username}", "player_page", html.player, "The replays of a player", "user_not_found"),
        _page("/account", "account_page", html.static("account"), "One's own account"),
        _page("/reset", "reset_page", html.static("reset"), "A new password, for whoever has a reset link"),
        _page("/web/{name}", "web_file", html.file, "A part of these pages"),
        post(
            "/api/session",
            resources.browser_sessions.begin,
            name="browser_login",
            tag="browsers",
            summary="Begin a session of a browser, of a new player perhaps",
            same_origin=True,
            limit=auth_limit,
            body=Json(BrowserLogin),
            answer=BrowserSession,
            errors=LOGIN_ERRORS,
        ),
        post(
            "/api/session/refresh",
            resources.browser_sessions.refresh,
            name="browser_refresh",
            tag="browsers",
            summary="Spend the cookie for a new one and an access token",
            same_origin=True,
            limit=auth_limit,
            answer=BrowserSession,
            errors=("unauthorized",),
        ),
        put(
            "/api/session/password",
            resources.browser_sessions.change_password,
            name="browser_change_password",
            tag="browsers",
            summary="Change one's password, and end all sessions but a new one of this browser",
            same_origin=True,
            protected=True,
            limit=PASSWORD,
            body=Json(PasswordChange),
            answer=BrowserSession,
            errors=(*PASSWORD_ERRORS, "user_not_found"),
        ),
        post(
            "/api/session/recover",
            resources.browser_sessions.recover,
            name="browser_recover",
            tag="browsers",
            summary="Spend a recovery code for a new password and a session of this browser",
            same_origin=True,
            limit=auth_limit,
            body=Json(Recovery),
            answer=BrowserSession,
            errors=(*RECOVERY_ERRORS, "suspended"),
        ),
        post(
            "/api/session/reset",
            resources.browser_sessions.reset,
            name="browser_reset",
            tag="browsers",
            summary="Spend the token of a reset link for a new password and a session of this browser",
            same_origin=True,
            limit=auth_limit,
            body=Json(Reset),
            answer=BrowserSession,
            errors=(*PASSWORD_ERRORS, "suspended"),
        ),
        delete(
            "/api/session",
            resources.browser_sessions.end,
            name="browser_logout",
            tag="browsers",
            summary="End the session of the cookie, and take the cookie away",
            same_origin=True,
            answer=Ok,
        ),
    )


def _page(path: str, name: str, handler: Callable[..., Awaitable[Any]], summary: str, *errors: Code) -> Route:
    return get(
        path,
        handler,
        name=name,
        summary=summary,
        shared=False,
        answer=Content(("text/html",)),
        errors=errors,
    )
