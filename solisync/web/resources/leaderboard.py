"""The leaderboard over HTTP (docs/protocol.md "The leaderboard")."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from ...access.rate_limit import OPT_IN
from ...errors import Code, Locked, NotFound, existing
from ...events.bus import Bus
from ...events.notices import boards_changed
from ...postgres.database import Database
from ...postgres.transaction import Transaction
from ...process.audit import Event, audit
from ...rules.documents import read_stored
from ...rules.leaderboard import NO_BESTS, Entry, OptIn, OwnEntry, bests_of, check_display_name
from ...rules.shapes import Ok
from ...storage.players import leaderboard, restrictions, sync
from ...storage.replays import boards
from ..kept_replies import as_list
from ..route import delete, get, post
from ..shared_cache import CoalescingCache
from ..wire.reply import Reply

DISPLAY_NAME_ERRORS: tuple[Code, ...] = ("display_name_empty", "display_name_length", "display_name_characters")


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
        summary="List the best players who have opted in",
        protected=True,
        answer=list[Entry],
    )
    async def show(self, *, player: str, gzip: bool) -> Reply:
        """Return the best hundred players who have opted in."""
        return as_list((await self.board.get()).body)[gzip]

    @get(
        "/api/leaderboard/opt-in",
        name="own_entry",
        summary="Show the player's own entry, and whether it is visible",
        protected=True,
        errors=("user_not_found",),
    )
    async def own(self, *, player: str) -> OwnEntry:
        """Return the player's own entry, visible or not."""
        return existing(await self.database.run(leaderboard.own, player))

    @post(
        "/api/leaderboard/opt-in",
        summary="Opt in to the leaderboard, or change the name there",
        protected=True,
        for_guests=False,
        limit=OPT_IN,
        errors=(*DISPLAY_NAME_ERRORS, "locked", "user_not_found"),
    )
    async def opt_in(self, *, player: str, body: OptIn) -> Ok:
        """Show the player on the leaderboard under this name, with the bests that the player has pushed so far."""
        display_name = check_display_name(body.display_name)
        with self.board.changing():
            changed = await self.database.transact(self._opt_in, player, display_name)
        self._conclude("opted in", player, changed)
        return Ok()

    @delete(
        "/api/leaderboard/opt-in",
        summary="Opt out of the leaderboard",
        protected=True,
        limit=OPT_IN,
        errors=("user_not_found",),
    )
    async def opt_out(self, *, player: str) -> Ok:
        """Hide the player's entry; its bests are kept in case the player opts in again."""
        with self.board.changing():
            found, changed = await self.database.transact(boards.changed_by, player, leaderboard.opt_out, player)
        if not found:
            raise NotFound("user_not_found")
        self._conclude("opted out", player, changed)
        return Ok()

    async def _opt_in(self, transaction: Transaction, player: str, display_name: str) -> tuple[str, ...]:
        saved = existing(await sync.load(transaction, player, None))
        if await restrictions.is_locked(transaction, player):
            raise Locked
        bests = NO_BESTS if saved.payload is None else bests_of(read_stored(saved.payload).payload.stats)
        _, changed = await boards.changed_by(
            transaction, player, leaderboard.opt_in, player, display_name, bests, self.now()
        )
        return changed

    def _conclude(self, event: Event, player: str, changed: tuple[str, ...]) -> None:
        """Publish the changes of a commit, if there are any."""
        if changed:
            self.board.invalidate()
            audit(event, user_id=player)
            self.bus.publish(*boards_changed(changed, with_player=True))


async def load_board(database: Database) -> Reply:
    """Read and encode the list."""
    return Reply.of(await database.run(leaderboard.top))
