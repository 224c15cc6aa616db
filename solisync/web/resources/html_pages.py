"""Pages for players, and the scripts and styles in them (docs/pages.md)."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from html import escape
from pathlib import Path
from string import Template

import msgspec

from ...errors import Code, NotFound
from ...postgres.database import Database
from ...rules.boards import daily_board
from ...rules.challenge import daily_challenge
from ...rules.html_pages import STATIC, PageMeta, PageName, day_data, day_head, replay_head
from ...rules.ids import is_id
from ...storage import boards
from ...storage import html_pages as pages
from ..documents import FILE_HEADERS, FOLDER, MEDIA_TYPES, both_ways, document, unless_known
from ..wire.reply import Reply

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
UNUSED_FEATURES = (
    "accelerometer autoplay camera display-capture fullscreen geolocation gyroscope hid magnetometer microphone midi"
    " payment picture-in-picture publickey-credentials-get screen-wake-lock serial usb xr-spatial-tracking"
)
PAGE_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in UNUSED_FEATURES.split()),
    "Referrer-Policy": "same-origin",
}
REMEMBERED = 100  # pages, of some 10 KiB each
SCRIPTS: dict[PageName, str] = {"missing": "page", "failed": "page"}  # all others have one of their own
ERROR_PAGES: dict[int, PageName] = {404: "missing", 500: "failed", 503: "away"}
NO_INDEX = '<meta name="robots" content="noindex">'

HTML = "text/html; charset=utf-8"

_encode = msgspec.json.Encoder().encode


class Pages:
    """Serves the pages; their files are read at the start."""

    def __init__(self, *, database: Database, folder: Path = FOLDER) -> None:
        self._database = database
        # Fast path: compressing a page anew that was compressed lately, 240 of 300 µs, see docs/performance.md
        self._document = lru_cache(REMEMBERED)(_page)
        self._layout = Template((folder / "layout.html").read_text("utf-8"))
        names: tuple[PageName, ...] = (*STATIC, "replay")
        self._mains = {name: (folder / f"{name}.html").read_text("utf-8") for name in names}
        self._static = {
            name: both_ways("page.html", self._html(name, head), PAGE_HEADERS) for name, head in STATIC.items()
        }
        self._files = {
            file.name: both_ways(file.name, file.read_bytes(), FILE_HEADERS)
            for file in sorted((folder / "web").iterdir())
            if file.suffix in MEDIA_TYPES
        }

    def static(self, name: PageName) -> Callable[..., Awaitable[Reply]]:
        """The handler of a page that is the same at all times."""
        replies = self._static[name]

        async def show(*, if_none_match: str | None, gzip: bool) -> Reply:
            return unless_known(replies[gzip], if_none_match)

        return show

    async def replay(self, *, replay_id: str, if_none_match: str | None, gzip: bool) -> Reply:
        """The page of a replay, with what previews of its link show."""
        found = await self._database.autocommit(pages.replay, replay_id) if is_id(replay_id) else None
        if found is None:
            return self._missing("replay_not_found", gzip)
        html = self._html("replay", replay_head(found), _encode(found), robots="" if found.replay.listed else NO_INDEX)
        return unless_known(self._document(html, gzip), if_none_match)

    async def day(self, *, day: str, if_none_match: str | None, gzip: bool) -> Reply:
        """The page of a day's deal; days to come have none."""
        try:
            _, begins = daily_board(day)
        except NotFound as error:
            return self._missing(error.code, gzip)
        if not await self._database.autocommit(boards.has_begun, begins):
            return self._missing("day_not_found", gzip)
        shown = day_data(daily_challenge(begins))
        html = self._html("daily", day_head(shown), _encode(shown))
        return unless_known(self._document(html, gzip), if_none_match)

    def error(self, status: int, retry_after: str | None) -> Reply | None:
        """The page of an error of this status, as no cache keeps it; None if there is none."""
        name = ERROR_PAGES.get(status)
        if name is None:
            return None
        html = self._html(name, STATIC[name], _encode({"retry_after": int(retry_after or 0)}))
        headers = {**PAGE_HEADERS, "Cache-Control": "no-store", "Vary": "Accept"}
        return Reply(status=status, body=html, content_type=HTML, headers=headers)

    async def file(self, *, name: str, if_none_match: str | None, gzip: bool) -> Reply:
        """A script, a style sheet or a picture of the pages."""
        if name not in self._files:
            raise NotFound()
        return unless_known(self._files[name][gzip], if_none_match)

    def _missing(self, code: Code, gzip: bool) -> Reply:
        reply = self._static["missing"][gzip]
        return msgspec.structs.replace(reply, status=404, headers={**reply.headers, "Error-Code": code})

    def _html(self, page: PageName, head: PageMeta, data: bytes = b"{}", *, robots: str = "") -> bytes:
        return self._layout.substitute(
            title=escape(head.title),
            description=escape(head.description),
            robots=robots,
            page=page,
            script=SCRIPTS.get(page, page),
            main=self._mains[page],
            data=_without_markup(data.decode()),
        ).encode()


def _page(html: bytes, gzip: bool) -> Reply:
    return document(html, "text/html", PAGE_HEADERS, gzipped=gzip)


def _without_markup(json: str) -> str:
    """The same JSON, in which no character means anything to a parser of HTML."""
    return json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
