"""The console's pages. They are the same for all clients, and load data from the routes (docs/console.md "Pages")."""

from collections.abc import Awaitable, Callable
from string import Template
from typing import NamedTuple

from ...errors import NotFound
from ..kept_replies import both_ways, unless_known
from ..page_build import (
    CLIENT_FILES,
    CONSOLE_FILES,
    CONSOLE_HEADERS,
    FILE_HEADERS,
    PLAYERS_FILES,
    page_files,
    with_parts,
)
from ..route import PAGE, Route
from ..wire.reply import Reply

SHARED = (
    "style.css",
    "page.js",
    "http.js",
    "icon.svg",
    "playback.js",
    "board.js",
    "faces.js",
    "gestures.js",
    "replay.css",
)
ALONE = {"Cross-Origin-Resource-Policy": "same-origin"}


class _Page(NamedTuple):
    path: str
    script: str
    title: str
    content: str = ""


WATCH = with_parts(PLAYERS_FILES, str(CONSOLE_FILES / "watch.html")).replace("$$", "$")
PAGES = (
    _Page("/", "overview", "Overview"),
    _Page("/players", "players", "Players"),
    _Page("/players/{user_id}", "player", "Player"),
    _Page("/review", "review", "Review"),
    _Page("/replays", "replays", "Replays"),
    _Page("/replays/{replay_id}", "replay", "Replay"),
    _Page("/replays/{replay_id}/watch", "watch", "Watch", WATCH),
    _Page("/acts", "acts", "Acts"),
    _Page("/service", "service", "Service"),
)


def page_routes() -> tuple[Route, ...]:
    """Return the routes of the pages and of their files, which this call reads."""
    layout = Template((CONSOLE_FILES / "layout.html").read_text("utf-8"))
    players = page_files(PLAYERS_FILES / "web", CLIENT_FILES)
    shared = {name: content for name, content in players.items() if name in SHARED}
    files = {**shared, **page_files(CONSOLE_FILES / "web")}
    replies = {name: both_ways(name, content, FILE_HEADERS | ALONE) for name, content in files.items()}

    async def file(name: str, if_none_match: str | None, gzip: bool) -> Reply:
        if name not in replies:
            raise NotFound
        return unless_known(replies[name][gzip], if_none_match)

    rows = [_row("/web/{name}", file, "file", "A script or a style of the pages")]
    for page in PAGES:
        html = layout.substitute(title=page.title, script=page.script, content=page.content).encode()
        rows.append(_row(page.path, _showing(html), f"{page.script}_page", page.title))
    return tuple(rows)


def _row(path: str, handler: Callable[..., Awaitable[Reply]], name: str, summary: str) -> Route:
    return Route(
        "GET",
        path,
        handler,
        name=name,
        summary=summary,
        for_admins=True,
        shared=False,
        answer=PAGE,
    )


def _showing(html: bytes) -> Callable[..., Awaitable[Reply]]:
    """Return the handler of a page; the page's script finds out whether the player or replay exists."""
    replies = both_ways("page.html", html, CONSOLE_HEADERS | ALONE)

    async def show(if_none_match: str | None, gzip: bool, user_id: str = "", replay_id: str = "") -> Reply:
        return unless_known(replies[gzip], if_none_match)

    return show
