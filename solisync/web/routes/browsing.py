"""The routes of pages for players (docs/pages.md)."""

from collections.abc import Awaitable, Callable
from typing import Any

from ...errors import Code
from ..pages import Pages
from ..route import Route


def browsing(*, pages: Pages) -> tuple[Route, ...]:
    """HTML, scripts and styles."""
    return (
        _page("/", "home_page", pages.static("home"), "What this is, the deal of the day and the newest wins"),
        _page("/replays", "replays_page", pages.static("replays"), "The newest replays"),
        _page("/replays/{replay_id}", "replay_page", pages.replay, "A replay, to watch", "replay_not_found"),
        _page("/leaderboard", "leaderboard_page", pages.static("leaderboard"), "The best players"),
        _page("/daily", "daily_page", pages.static("daily"), "The deal of the day"),
        _page("/daily/{day}", "day_page", pages.day, "The deal of a day", "day_not_found"),
        _page("/account", "account_page", pages.static("account"), "One's own account"),
        _page("/web/{name}", "web_file", pages.file, "A part of these pages"),
    )


def _page(path: str, name: str, handler: Callable[..., Awaitable[Any]], summary: str, *errors: Code) -> Route:
    return Route(
        method="GET",
        path=path,
        name=name,
        tag="pages",
        handler=handler,
        summary=summary,
        conditional=True,
        compressed=True,
        answer_content=("text/html",),
        errors=errors,
        listed=False,
    )
