"""Work in the background: deletion of expired rows, in small batches, and the numbers of each day."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from uuid import uuid4

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from .access.rate_limit import LIMITS, Limit, buckets_of
from .acts.act import Acting
from .acts.players import unsuspend
from .errors import DatabaseError, NotFound, Unavailable
from .events.notices import Publish
from .postgres.database import Database
from .postgres.transaction import Statements, Transaction, in_transaction
from .rules.shapes import NIL
from .storage import (
    accounts,
    admins,
    analytics,
    checks,
    daily_numbers,
    guests,
    history,
    rate_limits,
    recovery,
    replay_counts,
    restrictions,
    review,
    schema,
    sessions,
    sync,
)
from .storage.acts import Actor

EVERY_SECONDS = 60.0
BATCH = 1_000
COUNTED = 100  # players whose rows are locked while their replays are counted


class Housekeeping:
    """Ends suspensions and deletes expired rows, once a minute.

    The rows are: expired sessions, admins' codes and reset links; unused rate limits; cutoffs that no access token is
    older than; guests that were not used for long, and old keys; old analytics, history and marks of the review.
    Housekeeping also counts the numbers of each day, once an hour. Each round calls `links_open` with the number of
    reset links, `guests_now` with the number of guests, and `backed_up` with the time of the newest backup (seconds
    since 1970). A job that fails is logged, and the next round repeats it.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        database: Database,
        publish: Publish,
        reactor: ReactorBase,
        now: Callable[[], datetime],
        analytics_days: int | None,
        history_days: int,
        guest_days: int,
        limits: Sequence[Limit] = LIMITS,
        links_open: Callable[[int], None] = lambda count: None,
        guests_now: Callable[[int], None] = lambda count: None,
        backed_up: Callable[[float], None] = lambda when: None,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._analytics_days = analytics_days
        self._history_days = history_days
        self._guest_days = guest_days
        self._links_open = links_open
        self._guests = guests_now
        self._backed_up = backed_up
        self._limits = limits
        self._batch = batch
        self._after_guest = NIL  # the last guest of the page before
        self._after_counted: str | None = NIL  # the last player whose replays are counted; None: all are
        self._now = now
        self._begun = now()
        self._acting = Acting(database=database, publish=publish, by=Actor("service", "housekeeping"))
        self._loop = LoopingCall(self._round)
        self._loop.clock = reactor

    def start(self) -> None:
        """Start the rounds; the first one is in a minute, because a start is busy enough."""
        self._loop.start(EVERY_SECONDS, now=False)

    def stop(self) -> None:
        """Start no more rounds."""
        if self._loop.running:
            self._loop.stop()

    def _round(self) -> "Deferred[None]":
        # A LoopingCall ends at the first failure.
        return Deferred.fromCoroutine(self.prune()).addErrback(
            lambda failure: self._log.failure("a round of housekeeping failed", failure)
        )

    async def prune(self) -> None:
        """Run one round: all jobs, each in batches until nothing is left.

        A job that fails doesn't stop the others. Without a database the round ends.
        """
        for what, work in self._works().items():
            try:
                await work()
            except Unavailable as error:
                self._log.warn("housekeeping is postponed for a minute: {error}", error=error)
                return
            except DatabaseError as error:
                self._log.warn("housekeeping postpones {what} for a minute: {error}", what=what, error=error)

    def _works(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """The jobs of a round, by name. Suspensions come first, because players know when these end."""
        most = self._batch
        windows = dict(sorted((limit.name, limit.seconds) for limit in self._limits))  # the longest of each name
        works = {
            "ending suspensions": self._lift_suspensions,
            "expired sessions": self._all(lambda run: sessions.prune(run, self._now(), most=most)),
            "rate limits": self._all(lambda run: rate_limits.prune(run, windows=windows, most=most)),
            "searches": self._all(lambda run: checks.prune_searches(run, most=most)),
            "cutoffs": self._all(lambda run: restrictions.prune(run, most=most)),
            "reset links": self._prune_links,
            "admins": self._prune_admins,
            "history": self._all(lambda run: history.prune(run, days=self._history_days, most=most)),
            "marks of the review": self._all(lambda run: review.prune(run, most=most)),
            "remembered answers": self._prune_answers,
            "daily numbers": self._count_days,
            "guests": self._prune_guests,
            "the newest backup": self._show_backup,
            "counts of replays": self._count_replays,
            "joined guests": self._all(lambda run: guests.prune_joined(run, most=most)),
            "keys of guests": self._all(lambda run: guests.prune_keys(run, most=most)),
        }
        if self._analytics_days is not None:
            old = {"days": self._analytics_days, "most": most}
            works["analytics"] = self._all(lambda run: analytics.prune(run, self._now(), **old))
            works["names in analytics"] = self._all(lambda run: analytics.prune_names(run, self._now(), **old))
        return works

    def _all(self, prune: Callable[[Statements], Awaitable[int]]) -> Callable[[], Awaitable[None]]:
        """A job that prunes batch after batch, until one isn't full."""

        async def work() -> None:
            while await self._database.run(prune) == self._batch:
                pass

        return work

    async def _lift_suspensions(self) -> None:
        """End suspensions that are over; a failure affects only its own player."""
        for player in await self._database.run(restrictions.expired, most=self._batch):
            try:
                await self._acting.perform(unsuspend, player, only_ended=True)
            except NotFound:
                pass  # the player was deleted since the query
            except DatabaseError as error:
                self._log.warn("the suspension of {player} could not be ended: {error}", player=player, error=error)

    async def _prune_links(self) -> None:
        await self._all(lambda run: recovery.prune(run, most=self._batch))()
        self._links_open(await self._database.run(recovery.count_open))

    async def _prune_guests(self) -> None:
        """Delete guests that were not used for long, and count the others.

        A round looks at one page of guests, so that it costs the same however many there are. The next round continues
        there, and begins anew after the last page.
        """

        async def delete(transaction: Transaction, guest: str) -> bool:
            if not await guests.lock_abandoned(transaction, guest, self._guest_days):
                return False
            await guests.forget_key(transaction, guest)
            return await accounts.delete(transaction, guest, buckets_of(guest))

        page = await self._database.run(guests.page, self._after_guest, self._guest_days, self._batch)
        self._after_guest = page.last or NIL
        deleted = [await self._database.transact(delete, guest) for guest in page.abandoned]
        if any(deleted):
            self._log.info("unused guests deleted: {count}", count=sum(deleted))
        self._guests(await self._database.run(guests.number))

    async def _show_backup(self) -> None:
        self._backed_up(await self._database.run(schema.last_backup))

    async def _count_days(self) -> None:
        """Count the numbers of the days, each number in its own transaction, unless another node is counting.

        A count may take longer than a connection of the pool allows, so it has its own.
        """
        await self._database.run(daily_numbers.prune, self._now())
        due = await self._database.run(daily_numbers.due, self._now(), self._begun)
        if not due:
            return
        async with self._database.connection(bounded=False) as connection:
            for name in due:
                count = partial(daily_numbers.count, name=name, now=self._now(), begun=self._begun)
                if not await in_transaction(connection, count):
                    return

    async def _count_replays(self) -> None:
        """Count the replays of all players without a count, once after a start; triggers keep the counts afterwards."""
        while self._after_counted is not None:
            page = await self._database.run(replay_counts.page, self._after_counted, COUNTED)
            if page.uncounted:
                await self._database.transact(replay_counts.count, page.uncounted)
            self._after_counted = page.last

    async def _prune_admins(self) -> None:
        await self._database.run(admins.prune)

    async def _prune_answers(self) -> None:
        await self._database.run(sync.prune, start=str(uuid4()), most=self._batch)
