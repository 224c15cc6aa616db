"""Deleting what has expired in the background, in small batches, so that no request takes longer for it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import uuid4

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from .access.rate_limit import LIMITS, Limit
from .acts.act import Acting
from .acts.players import UNSUSPEND
from .errors import DatabaseError, NotFound, Unavailable
from .klondike import ENGINE_VERSION
from .postgres.database import Database
from .postgres.transaction import Statements
from .storage import (
    admins,
    analytics,
    boards,
    history,
    rate_limits,
    recent_searches,
    recovery,
    restricting,
    sessions,
    sync,
)
from .storage.acts import Actor
from .storage.boards import Verified

EVERY_SECONDS = 60.0
BATCH = 1_000
PAGE = 200  # of verdicts; if all are of one player, they are one transaction


class Housekeeping:
    """Every minute ends suspensions that are over, and deletes what is of no use any more.

    That is expired sessions, codes of admins and reset links, unused rate limits, cutoffs below which there are no
    access tokens any more, old analytics and history. Tells `links_open` how many reset links are left. Once after a
    start, takes games of older rulesets off the boards, where they stand from before migrations/0017. What fails is
    logged, and the next round tries it again.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        database: Database,
        reactor: ReactorBase,
        now: Callable[[], datetime],
        analytics_days: int | None,
        history_days: int,
        limits: Sequence[Limit] = LIMITS,
        links_open: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._database = database
        self._analytics_days = analytics_days
        self._history_days = history_days
        self._links_open = links_open
        self._limits = limits
        self._now = now
        self._acting = Acting(database=database, by=Actor("service", "housekeeping"))
        self._withdrawn: Verified | None = Verified()
        self._loop = LoopingCall(self._round)
        self._loop.clock = reactor

    def start(self) -> None:
        """Begin; the first round is in a minute, when the rush of a start is over."""
        self._loop.start(EVERY_SECONDS, now=False)

    def stop(self) -> None:
        """Begin no further rounds."""
        if self._loop.running:
            self._loop.stop()

    def _round(self) -> "Deferred[None]":
        # a LoopingCall ends at the first failure
        return Deferred.fromCoroutine(self.prune()).addErrback(
            lambda failure: self._log.failure("a round failed", failure)
        )

    async def prune(self) -> None:
        """Run one round: batch after batch, until there is nothing left to do."""
        for work in (self._lift_suspensions, self._prune_tables):
            try:
                await work()
            except (DatabaseError, Unavailable) as error:
                self._log.warn("housekeeping is put off for a minute: {error}", error=error)

    async def _lift_suspensions(self) -> None:
        """End those that are over; first of all, because players have been told until when they last."""
        for player in await self._database.autocommit(restricting.expired, most=BATCH):
            with suppress(NotFound):  # deleted meanwhile
                await self._acting.perform(UNSUSPEND, player, only_ended=True)

    async def _prune_tables(self) -> None:
        longest = max(limit.seconds for limit in self._limits)
        await self._prune_all(lambda statements: sessions.prune(statements, self._now(), most=BATCH))
        await self._prune_all(lambda statements: rate_limits.prune(statements, idle_seconds=longest, most=BATCH))
        await self._prune_all(lambda statements: recent_searches.prune(statements, most=BATCH))
        await self._prune_all(lambda statements: restricting.prune(statements, most=BATCH))
        await self._prune_all(lambda statements: recovery.prune(statements, most=BATCH))
        self._links_open(await self._database.autocommit(recovery.count_open))
        await self._database.autocommit(admins.prune)
        await self._prune_all(lambda statements: history.prune(statements, days=self._history_days, most=BATCH))
        await self._database.autocommit(sync.prune, start=str(uuid4()), most=BATCH)
        if self._analytics_days is not None:
            old = {"days": self._analytics_days, "most": BATCH}
            await self._prune_all(lambda statements: analytics.prune(statements, self._now(), **old))
            await self._prune_all(lambda statements: analytics.prune_names(statements, self._now(), **old))
        await self._withdraw_evidence()

    async def _withdraw_evidence(self) -> None:
        """Go on to the end, one player after the other; what is done is done whenever this ends, and on any node."""
        while self._withdrawn is not None:
            found, last = await self._database.autocommit(
                boards.older_evidence, self._withdrawn, engine=ENGINE_VERSION, most=PAGE
            )
            for player, replay_ids in found.items():
                await self._database.autocommit(boards.place, player, replay_ids)
            self._withdrawn = last

    async def _prune_all(self, prune: Callable[[Statements], Awaitable[int]]) -> None:
        while await self._database.autocommit(prune) == BATCH:
            pass
