"""The leaderboard over HTTP (docs/protocol.md "The leaderboard")."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...access.rate_limit import OPT_IN
from ...errors import Locked, NotFound
from ...events.bus import Bus
from ...events.notices import BoardsChanged
from ...postgres.database import Database
from ...postgres.transaction import Statements, Transaction
from ...process.audit import audit
from ...rules.leaderboard import NO_BESTS, Entry, OptIn, OwnEntry, bests_of, check_display_name
from ...rules.saved import read_saved
from ...rules.shapes import Ok
from ...storage import leaderboard, restrictions, sync
from ..route import delete, get, post
from ..shared_cache import CoalescingCache
from ..wire.reply import Reply


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """Lists the best players, and lets players opt in and out."""

    tag: ClassVar[str] = "leaderboard"

    database: Database
    board: CoalescingCache[Reply]
    bus: Bus
    now: Callable[[], datetime]

    @get(
        "/api/leaderboard",
        name="leaderboard",
        summary="List the best players who want to be seen",
        protected=True,
        answer=list[Entry],
    )
    async def show(self, *, player: str) -> Reply:
        """The best hundred players who have opted in."""
        return await self.board.get()

    @get(
        "/api/leaderboard/opt-in",
        name="own_entry",
        summary="Show one's own entry, and whether others see it",
        protected=True,
        errors=("user_not_found",),
    )
    async def own(self, *, player: str) -> OwnEntry:
        """The player's own entry, visible or not."""
        entry = await self.database.autocommit(leaderboard.own, player)
        if entry is None:
            raise NotFound("user_not_found")
        return entry

    @post(
        "/api/leaderboard/opt-in",
        summary="Appear on the leaderboard, or change one's name there",
        protected=True,
        limit=OPT_IN,
        errors=("display_name_empty", "display_name_length", "display_name_characters", "locked", "user_not_found"),
    )
    async def opt_in(self, *, player: str, body: OptIn) -> Ok:
        """List the player under this name, with the bests of what they have pushed so far."""
        await self.database.transact(self._opt_in, player, check_display_name(body.display_name))
        return Ok()

    @delete(
        "/api/leaderboard/opt-in",
        summary="Disappear from the leaderboard",
        protected=True,
        limit=OPT_IN,
        errors=("user_not_found",),
    )
    async def opt_out(self, *, player: str) -> Ok:
        """Hide the player; their bests are kept in case they opt in again."""
        if not await self.database.autocommit(self._opt_out, player):
            raise NotFound("user_not_found")
        return Ok()

    # The database runs these to their end even if the client has gone, so the consequences of a commit belong here.

    async def _opt_in(self, transaction: Transaction, player: str, display_name: str) -> None:
        saved = await sync.load(transaction, player, None)
        if saved is None:
            raise NotFound("user_not_found")
        if await restrictions.is_locked(transaction, player):
            raise Locked
        bests = NO_BESTS if saved.payload is None else bests_of(read_saved(saved.payload).payload.stats)
        try:
            await transaction.commit_with(*leaderboard.opting_in(player, display_name, bests, self.now()))
        finally:
            self.board.invalidate()
        audit("opted in", user_id=player)
        self.bus.publish(BoardsChanged())

    async def _opt_out(self, statements: Statements, player: str) -> bool:
        try:
            found = await leaderboard.opt_out(statements, player)
        finally:
            self.board.invalidate()
        if found:
            audit("opted out", user_id=player)
        self.bus.publish(BoardsChanged())
        return found


async def load_board(database: Database) -> Reply:
    """The list, encoded."""
    return Reply.of(await database.autocommit(leaderboard.top))
