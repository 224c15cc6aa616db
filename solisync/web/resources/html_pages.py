"""Pages for players, with their scripts and styles (docs/pages.md)."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import lru_cache, partial
from html import escape
from string import Template
from typing import ClassVar, get_args
from urllib.parse import quote

import msgspec

from ...errors import Code
from ...klondike.daily import OFFSETS
from ...postgres.database import Database
from ...rules.challenge import daily_challenge, read_day
from ...rules.html_pages import (
    EARLY,
    HOME,
    STATIC,
    DayBoard,
    DayData,
    PageMeta,
    PageName,
    ReplayData,
    claim,
    day_data,
    day_head,
    home_data,
    player_head,
    replay_head,
)
from ...rules.recovery import on_site
from ...rules.shapes import is_id
from ...rules.texts import (
    in_words,
    long_date,
    machine_time,
    moves_text,
    points,
    recorded_on,
    time_taken,
    verdict_text,
    weekday,
    winners_text,
    winners_today,
)
from ...storage import html_pages as pages
from ..html_parts import Links, deal_drawing, footer_links, player_name, replay_table
from ..kept_replies import both_ways, document, unless_known
from ..page_build import PAGE_HEADERS, PLAYERS_FILES, players_build, with_parts
from ..route import PAGE, Handler, Route, get
from ..wire.reply import Reply

REMEMBERED = 100  # pages
PAGE_BYTES = 65_536  # a larger page, which shouldn't exist, is neither compressed nor remembered
SCRIPTS: dict[PageName, str] = {
    "missing": "page",
    "failed": "page",
    "offline": "page",
    "early": "page",
}  # others have their own
KEPT: tuple[PageName, ...] = ("play", "offline")
ERROR_PAGES: dict[int, PageName] = {404: "missing", 500: "failed", 503: "away"}
NO_INDEX = '<meta name="robots" content="noindex">'

HTML = "text/html; charset=utf-8"

_encode = msgspec.json.Encoder().encode


def _page_at(path: str, name: str, summary: str, *errors: Code) -> Callable[[Handler], Handler]:
    """Declare a page, which pages of other origins may not read."""
    return get(path, name=name, summary=summary, shared=False, answer=PAGE, errors=errors)


class Pages:
    """Serves the pages, which are read at the start. The database's clock decides the day of `/` and `/daily`."""

    tag: ClassVar[str] = ""

    def __init__(
        self,
        *,
        database: Database,
        site_name: str,
        site_url: str | None,
        site_links: Links,
        public_avatars: bool,
    ) -> None:
        self._database = database
        self._site_name = site_name
        self._site_url = site_url
        self._avatars = "public" if public_avatars else ""
        # Fast path: compressing a page again that was compressed lately, 240 of 300 µs, see docs/performance.md
        self._remembered = lru_cache(REMEMBERED)(_page)
        self._drawing = lru_cache(REMEMBERED)(deal_drawing)
        self._layout = Template((PLAYERS_FILES / "layout.html").read_text("utf-8"))
        self._mains = {name: Template(with_parts(PLAYERS_FILES, f"{name}.html")) for name in get_args(PageName)}
        self._links = footer_links(site_links)
        self.build = players_build(site_name, site_url, site_links, public_avatars)
        self._static = {
            name: both_ways("page.html", self._html(name, head), PAGE_HEADERS) for name, head in STATIC.items()
        }

    def static_routes(self) -> Iterator[Route]:
        """The routes of pages that never change while the process runs."""
        summaries: dict[PageName, str] = {
            "play": "A game to play",
            "replays": "The newest replays",
            "leaderboard": "The best players",
            "account": "The player's account",
            "reset": "A new password, for the holder of a reset link",
            "offline": "Shown by browsers without a network, in place of a page that they don't keep",
        }
        for name, summary in summaries.items():
            handler = partial(self._show_static, self._static[name])
            yield Route("GET", f"/{name}", handler, name=f"{name}_page", summary=summary, shared=False, answer=PAGE)

    @property
    def kept(self) -> dict[str, bytes]:
        """The pages that browsers keep for players without a network, by path."""
        return {f"/{name}": self._static[name][False].body for name in KEPT}

    async def _show_static(self, replies: tuple[Reply, Reply], *, if_none_match: str | None, gzip: bool) -> Reply:
        return unless_known(replies[gzip], if_none_match)

    @_page_at("/", "home_page", "What this is, the deal of the day and the newest wins")
    async def home(self, *, if_none_match: str | None, gzip: bool) -> Reply:
        """The home page, with the goal and the deal of the day, and how many players have won it."""
        known = await self._database.run(pages.day_board, None)
        shown = home_data(known.day)
        html = self._html(
            "home",
            HOME,
            _encode(shown),
            path="/",
            texts=_day_texts(shown) | {"winners": winners_today(known.players)},
            parts={"drawing": self._drawn(shown)},
        )
        return unless_known(self._document(html, gzip), if_none_match)

    @_page_at("/replays/{replay_id}", "replay_page", "A replay, to watch", "replay_not_found")
    async def replay(self, *, replay_id: str, if_none_match: str | None, gzip: bool) -> Reply:
        """The page of a replay, with the texts for previews of its link."""
        found = await self._database.run(pages.replay, replay_id) if is_id(replay_id) else None
        if found is None:
            return self._missing("replay_not_found", gzip)
        robots = "" if found.replay.listed else NO_INDEX
        html = self._html(
            "replay",
            replay_head(found),
            _encode(found),
            path=f"/replays/{replay_id}",
            robots=robots,
            texts=_replay_texts(found),
            # no link to a suspended player, who has no page
            parts={"player": player_name(found.replay.username, linked=found.replay.listed)},
        )
        return unless_known(self._document(html, gzip), if_none_match)

    @_page_at("/daily", "daily_page", "The deal of the day")
    async def today(self, *, if_none_match: str | None, gzip: bool) -> Reply:
        """The page of today's deal, by the database's clock."""
        return self._day(await self._database.run(pages.day_board, None), if_none_match, gzip)

    @_page_at("/daily/{day}", "day_page", "The deal of a day", "day_not_found")
    async def day(self, *, day: str, if_none_match: str | None, gzip: bool) -> Reply:
        """The page of a day's deal; future days have no page."""
        begins = read_day(day)
        if begins is None:
            return self._missing("day_not_found", gzip)
        known = await self._database.run(pages.day_board, begins)
        if not known.begun:
            return self._early(begins, gzip)
        return self._day(known, if_none_match, gzip)

    def _early(self, day: date, gzip: bool) -> Reply:
        reply = self._document(self._html("early", EARLY, texts={"opens": long_date(day)}), gzip)
        return _not_found(reply, "day_not_found")

    def _day(self, known: DayBoard, if_none_match: str | None, gzip: bool) -> Reply:
        shown = day_data(daily_challenge(known.day), known.today)
        html = self._html(
            "daily",
            day_head(shown),
            _encode(shown),
            path=f"/daily/{known.day}",
            texts=_day_texts(shown) | _days_around(known),
            parts={"drawing": self._drawn(shown)},
        )
        return unless_known(self._document(html, gzip), if_none_match)

    @_page_at("/players/{username}", "player_page", "The replays of a player", "player_not_found")
    async def player(self, *, username: str, if_none_match: str | None, gzip: bool) -> Reply:
        """The page of a player with listed replays, which shows the newest of them."""
        found = await self._database.run(pages.player, username)
        if found is None:
            return self._missing("player_not_found", gzip)
        html = self._html(
            "player",
            player_head(found),
            _encode(found.data),
            path=f"/players/{quote(found.username, safe='')}",
            robots=NO_INDEX,
            texts={"player": found.username, "older": "" if found.page.next else "hidden"},
            parts={"replays": replay_table(found.page.replays)},
        )
        return unless_known(self._document(html, gzip), if_none_match)

    def error(self, status: int, retry_after: str | None) -> Reply | None:
        """The page of an error status, which no cache keeps; None if the status has no page."""
        name = ERROR_PAGES.get(status)
        if name is None:
            return None
        html = self._html(name, STATIC[name], _encode({"retry_after": int(retry_after or 0)}))
        headers = {**PAGE_HEADERS, "Cache-Control": "no-store", "Vary": "Accept"}
        return Reply(status=status, body=html, content_type=HTML, headers=headers)

    def _preview_url(self, path: str) -> str:
        url = escape(on_site(self._site_url, path))
        return f'<meta property="og:url" content="{url}">' if self._site_url and path else ""

    def _document(self, html: bytes, gzip: bool) -> Reply:
        return self._remembered(html, gzip) if len(html) <= PAGE_BYTES else _page(html, gzip=False)

    def _drawn(self, day: DayData) -> str:
        return self._drawing(int(day.deal))

    def _missing(self, code: Code, gzip: bool) -> Reply:
        return _not_found(self._static["missing"][gzip], code)

    def _html(
        self,
        page: PageName,
        head: PageMeta,
        data: bytes = b"{}",
        *,
        path: str = "",
        robots: str = "",
        texts: Mapping[str, str] | None = None,
        parts: Mapping[str, str] | None = None,
    ) -> bytes:
        """The HTML of a page, with its path for previews; `texts` are escaped in it, `parts` are HTML already."""
        escaped = {name: escape(text) for name, text in (texts or {}).items()}
        return self._layout.substitute(
            title=escape(" – ".join(filter(None, [head.title, self._site_name]))),
            description=escape(head.description),
            robots=robots,
            url=self._preview_url(path),
            picture=escape(on_site(self._site_url, "/web/share.png")),
            page=page,
            script=SCRIPTS.get(page, page),
            site=escape(self._site_name),
            links=self._links,
            avatars=self._avatars,
            web=self.build.folder,
            main=self._mains[page].substitute(escaped, web=self.build.folder, **(parts or {})),
            data=_without_markup(data.decode()),
        ).encode()


def _day_texts(day: DayData) -> dict[str, str]:
    return {
        "date": str(day.date),
        "weekday": weekday(day.date),
        "long_date": long_date(day.date),
        "goal": day.goal.description,
        "deal": day.deal,
    }


def _days_around(known: DayBoard) -> dict[str, str]:
    day = known.day
    return {
        "winners": winners_text(known.players, known.best),
        "earlier": f"/daily/{date.fromordinal(max(1, day.toordinal() - 1))}",
        "later": f"/daily/{date.fromordinal(day.toordinal() + 1)}" if known.over else "/daily",
        "no_earlier": "hidden" if day == date.min else "",
        "no_later": "" if known.over else "hidden",
        "over": "" if known.over else "hidden",
        "winnable": "" if day in OFFSETS else "hidden",
        "play": f"/play?daily={day}",
    }


def _replay_texts(shown: ReplayData) -> dict[str, str]:
    replay, verdict = shown.replay, shown.verdict
    return {
        "id": replay.id,
        "claim": f"{claim(verdict)} {points(replay.final_score)}",
        "status": verdict.status,
        "verdict": verdict_text(verdict),
        "time": time_taken(replay.time_seconds),
        "moves": moves_text(verdict),
        "draw": in_words(replay.draw_mode),
        "mode": in_words(replay.mode),
        "recorded_at": machine_time(replay.recorded_at),
        "played": recorded_on(replay.recorded_at),
        "deal": replay.deal or "unknown",
        "play": f"/play?deal={replay.deal}&draw={'three' if replay.draw_mode == 'DrawThree' else 'one'}",
        "no_play": "hidden" if replay.deal is None else "",
    }


def _not_found(page: Reply, code: Code) -> Reply:
    return msgspec.structs.replace(page, status=404, headers={**page.headers, "Error-Code": code})


def _page(html: bytes, gzip: bool) -> Reply:
    return document(html, HTML, PAGE_HEADERS, gzipped=gzip)


def _without_markup(json: str) -> str:
    """Escape JSON so that no character has a meaning in HTML."""
    return json.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
