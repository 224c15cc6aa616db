"""Deals, the daily challenge and the boards over HTTP (docs/protocol.md "Deals", "Boards")."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...klondike import dealt
from ...postgres.database import Database
from ...rules.boards import (
    BoardPage,
    BoardQuery,
    ClassicBoardQuery,
    classic_board,
    daily_board,
    deal_board,
    no_such_day,
    page,
    window,
)
from ...rules.challenge import DailyChallenge, DealtCards, daily_challenge, read_deal, seconds_left
from ...storage.replays import boards
from ..kept_replies import unless_known
from ..route import get
from ..wire.reply import Reply

FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


@dataclass(frozen=True, kw_only=True)
class Boards:
    """Lists the best verified replays, one for each player who has opted in."""

    tag: ClassVar[str] = "boards"

    database: Database

    @get(
        "/api/boards/verified",
        name="classic_board",
        summary="List the best verified replays of mode Classic",
        protected=True,
    )
    async def classic(self, *, player: str, query: ClassicBoardQuery) -> BoardPage:
        """Return the board of mode Classic, for one draw mode or both."""
        return await self._show(classic_board(query.draw_mode), player, query)

    @get(
        "/api/boards/daily/{day}",
        name="daily_board",
        summary="List the best verified replays of a day's deal",
        protected=True,
        errors=("day_not_found",),
    )
    async def daily(self, *, player: str, day: str, query: BoardQuery) -> BoardPage:
        """Return the board of a day's deal."""
        board, begins = daily_board(day)
        if not await self.database.run(boards.has_begun, begins):
            raise no_such_day()
        return await self._show(board, player, query)

    @get(
        "/api/boards/deals/{seed}/{draw_mode}",
        name="deal_board",
        summary="List the best verified replays of a deal",
        protected=True,
    )
    async def deal(self, *, player: str, seed: str, draw_mode: str, query: BoardQuery) -> BoardPage:
        """Return the board of a deal."""
        return await self._show(deal_board(seed, draw_mode), player, query)

    async def _show(self, board: str, player: str, query: BoardQuery) -> BoardPage:
        wanted = window(query)
        return page(await self.database.run(boards.show, board, player, wanted), wanted.limit)


class Challenge:
    """Serves the daily challenge, and any deal."""

    tag: ClassVar[str] = "challenge"

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._today = daily_challenge(now().date())
        self._reply = Reply.of(self._today)

    @get(
        "/api/daily-challenge",
        name="daily_challenge",
        summary="Show the deal of the day and its goal",
        answer=DailyChallenge,
    )
    async def daily(self) -> Reply:
        """Return today's challenge, in UTC; caches may keep it until midnight."""
        now = self._now()
        if now.date() != self._today.date:
            self._today = daily_challenge(now.date())
            self._reply = Reply.of(self._today)
        return self._reply.with_headers({"Cache-Control": f"public, max-age={seconds_left(now)}"})

    @get(
        "/api/deals/{seed}/{draw_mode}",
        name="deal",
        summary="Show the cards of a deal",
        answer=DealtCards,
    )
    async def deal(self, *, seed: str, draw_mode: str, if_none_match: str | None) -> Reply:
        """Return the cards of a seed; they never change, and take a tenth of a millisecond to deal."""
        cards = dealt(read_deal(seed, draw_mode))
        reply = Reply.of(DealtCards(seed, draw_mode, cards.tableau, cards.stock))
        return unless_known(reply.with_headers({**FOR_EVER, "ETag": f'"{seed}/{draw_mode}"'}), if_none_match)
