"""Work in the background: deletion of what is old, in small batches, and the numbers of each day."""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol
from uuid import uuid4

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from .access.rate_limit import LIMITS, Limit, buckets_of
from .acts.act import Acting
from .acts.large_accounts import settle
from .acts.players import unsuspend
from .errors import DatabaseError, NotFound, Unavailable
from .events.notices import Publish
from .postgres.database import Database
from .postgres.transaction import Statements, Transaction, in_transaction
from .rules.shapes import NIL
from .storage import analytics, rate_limits, retention, schema
from .storage import housekeeping as runs
from .storage.operators import admins, daily_numbers, large_accounts, review
from .storage.operators.acts import Actor
from .storage.players import accounts, guests, history, recovery, restrictions, sessions, sync
from .storage.replays import checks

MINUTE, HOUR = 60.0, 3_600.0
EVERY_SECONDS = 61.0  # from round to round: a second more than MINUTE, or a round that is early would find nothing due
# After this time, a job ends with the batch that it is in, and goes on in the next round. Otherwise one large job would
# delay the others, and other processes would claim them all again after MINUTE.
ROUND_SECONDS = 30.0
BATCH = 1_000


class Prune(Protocol):
    """A statement that deletes up to `most` rows; returns their number."""

    def __call__(self, statements: Statements, /, *, most: int) -> Awaitable[int]: ...


@dataclass(frozen=True, slots=True)
class HousekeepingJob:
    """Work of housekeeping: `run` returns the number of rows that it deleted, ended or counted.

    It runs `every` so many seconds. The retention clock is moved before a job that `deletes_by_age`. A job with a
    `setting` deletes by the value of this variable.
    """

    name: str
    run: Callable[["Housekeeping"], Awaitable[int]]
    every: float = MINUTE
    deletes_by_age: bool = True
    setting: str | None = None


class Housekeeping:
    """Runs each of its jobs as often as it says, counted over all processes of all nodes.

    Each round claims the jobs that are due. A job that fails is logged, and is due again in the next round, as is a job
    that the round had no time to finish. At its end, a round calls `show` with numbers from the database: any process
    may have run the jobs, and each reports the numbers. These are `reset_links` and `guests`, how far the retention
    clock is `behind`, in seconds, and as seconds since 1970 the `last_runs` of jobs by name and the newest backup,
    `backed_up`. `publish` and `forget` are those of Acting.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        database: Database,
        publish: Publish,
        forget: Callable[[], None] = lambda: None,
        reactor: ReactorBase,
        analytics_days: int | None,
        history_days: int,
        guest_days: int,
        limits: Sequence[Limit] = LIMITS,
        show: Callable[..., None] = lambda **numbers: None,
        batch: int = BATCH,
        jobs: Sequence[HousekeepingJob] = (),
    ) -> None:
        self._database = database
        self._analytics_days = analytics_days
        self._history_days = history_days
        self._guest_days = guest_days
        self._windows = dict(sorted((limit.name, limit.seconds) for limit in limits))  # the longest of each name
        self._show = show
        self._batch = batch
        self._jobs = jobs or JOBS
        self._names = [job.name for job in self._jobs]
        self._has_run = False
        self._seconds = reactor.seconds
        self._ends_at = math.inf
        self._is_finished = True
        self._acting = Acting(database=database, publish=publish, forget=forget, by=Actor("service", "housekeeping"))
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
        return Deferred.fromCoroutine(self._work()).addErrback(
            lambda failure: self._log.failure("a round of housekeeping failed", failure)
        )

    async def _work(self) -> None:
        """Run the jobs that are due; in the first round of a process, all that no process has begun within a minute."""
        every = [job.every if self._has_run else 0.0 for job in self._jobs]
        self._ends_at = self._seconds() + ROUND_SECONDS
        try:
            await self._run(await self._database.run(runs.claim, self._names, every, MINUTE))
            self._has_run = True
        except (Unavailable, DatabaseError) as error:
            self._log.warn("housekeeping is postponed for a minute: {error}", error=error)

    async def prune(
        self, names: Sequence[str] = (), report: Callable[[str, int | DatabaseError], None] = lambda name, rows: None
    ) -> None:
        """Run these jobs, or all, even if they aren't due; call `report` after each, with its name and its result.

        Raises Unavailable.
        """
        names = [*names] or self._names
        await self._run(await self._database.run(runs.claim, names, [0.0] * len(names), 0.0), report)

    async def _run(
        self, names: Sequence[str], report: Callable[[str, int | DatabaseError], None] = lambda name, rows: None
    ) -> None:
        """Run claimed jobs. A job that fails doesn't stop the others; without a database, the round ends."""
        jobs = [job for job in self._jobs if job.name in names]
        if any(job.deletes_by_age for job in jobs):
            await self._database.run(retention.move)
        for job in jobs:
            self._is_finished = True
            try:
                rows = await job.run(self)
                if self._is_finished:
                    await self._database.run(runs.ran, job.name)
                report(job.name, rows)
            except DatabaseError as error:
                self._log.warn("housekeeping postpones {what} for a minute: {error}", what=job.name, error=error)
                report(job.name, error)
        self._show(
            reset_links=await self._database.run(recovery.count_open),
            guests=await self._database.run(guests.number),
            backed_up=await self._database.run(schema.last_backup),
            behind=await self._database.run(retention.behind),
            last_runs={
                last.job: last.ran_at.timestamp()
                for last in await self._database.run(runs.last_runs, self._names)
                if last.ran_at is not None
            },
        )

    def _goes_on(self) -> bool:
        """Whether there is time for another batch. If not, the job is due again in the next round."""
        self._is_finished = self._seconds() < self._ends_at
        return self._is_finished

    async def _in_batches(self, work: Callable[[], Awaitable[int]]) -> int:
        """Work batch after batch, until one isn't full or the round's time is over; return the number of rows."""
        total = done = await work()
        while done == self._batch and self._goes_on():
            done = await work()
            total += done
        return total

    async def _prune(self, statement: Prune) -> int:
        return await self._in_batches(lambda: self._database.run(statement, most=self._batch))

    async def _prune_limits(self) -> int:
        return await self._prune(partial(rate_limits.prune, windows=self._windows))

    async def _prune_history(self) -> int:
        return await self._prune(partial(history.prune, days=self._history_days))

    async def _prune_analytics(self) -> int:
        if self._analytics_days is None:
            return 0
        return await self._prune(partial(analytics.prune, days=self._analytics_days))

    async def _prune_names(self) -> int:
        if self._analytics_days is None:
            return 0
        return await self._prune(partial(analytics.prune_names, days=self._analytics_days))

    async def _prune_admins(self) -> int:
        return await self._database.run(admins.prune)

    async def _prune_answers(self) -> int:
        return await self._database.run(sync.prune, start=str(uuid4()), most=self._batch)

    async def _end_suspensions(self) -> int:
        """End a batch of suspensions that are over; a failure affects only its own player."""
        ended = 0
        for player in await self._database.run(restrictions.expired, most=self._batch):
            try:
                ended += (await self._acting.perform(unsuspend, player, only_ended=True)).changed
            except NotFound:
                pass  # the player was deleted since the query
            except DatabaseError as error:
                self._log.warn("the suspension of {player} could not be ended: {error}", player=player, error=error)
        return ended

    async def _prune_guests(self) -> int:
        """Delete guests that were not used for long, page by page."""

        async def delete(transaction: Transaction, guest: str) -> bool:
            if not await guests.lock_abandoned(transaction, guest, self._guest_days):
                return False
            await guests.forget_key(transaction, guest)
            return await accounts.delete(transaction, guest, buckets_of(guest))

        deleted = 0
        after: str | None = NIL
        while after is not None:
            page = await self._database.run(guests.page, after, self._guest_days, self._batch)
            deleted += sum([await self._database.transact(delete, guest) for guest in page.abandoned])
            after = page.last
            if after is not None and not self._goes_on():
                break
        if deleted:
            self._log.info("unused guests deleted: {count}", count=deleted)
        return deleted

    async def _settle_large_accounts(self) -> int:
        """Do what acts on large accounts have left."""
        waiting = await self._database.run(large_accounts.waiting)
        for account in waiting:
            await settle(self._database, self._acting.publish, account, self._goes_on)
        return len(waiting)

    async def _count_days(self) -> int:
        """Count the numbers of the days, which may take longer than a connection of the pool allows."""
        deleted = await self._database.run(daily_numbers.prune)
        async with self._database.connection(bounded=False) as connection:
            await in_transaction(connection, daily_numbers.count)
        return deleted


def _pruning(statement: Prune) -> Callable[[Housekeeping], Awaitable[int]]:
    return lambda keeper: keeper._prune(statement)


# Suspensions come first, because players know when these end.
JOBS = (
    HousekeepingJob("ending suspensions", lambda keeper: keeper._in_batches(keeper._end_suspensions)),
    HousekeepingJob("expired sessions", _pruning(sessions.prune)),
    HousekeepingJob("rate limits", Housekeeping._prune_limits, deletes_by_age=False, setting="SOLISYNC_AUTH_LIMIT"),
    HousekeepingJob("searches", _pruning(checks.prune_searches), deletes_by_age=False),
    HousekeepingJob("cutoffs", _pruning(restrictions.prune)),
    HousekeepingJob("reset links", _pruning(recovery.prune)),
    HousekeepingJob("sessions and codes of admins", Housekeeping._prune_admins),
    HousekeepingJob("history", Housekeeping._prune_history, setting="SOLISYNC_HISTORY_DAYS"),
    HousekeepingJob("marks of the review", _pruning(review.prune)),
    HousekeepingJob("remembered answers", Housekeeping._prune_answers, deletes_by_age=False),
    HousekeepingJob(daily_numbers.JOB, Housekeeping._count_days, every=HOUR),
    HousekeepingJob("guests", Housekeeping._prune_guests, every=HOUR, setting="SOLISYNC_GUEST_DAYS"),
    HousekeepingJob("large accounts", Housekeeping._settle_large_accounts, deletes_by_age=False),
    HousekeepingJob("joined guests", _pruning(guests.prune_joined)),
    HousekeepingJob("keys of guests", _pruning(guests.prune_keys)),
    HousekeepingJob("analytics", Housekeeping._prune_analytics, setting="SOLISYNC_ANALYTICS_DAYS"),
    HousekeepingJob("names in analytics", Housekeeping._prune_names, setting="SOLISYNC_ANALYTICS_DAYS"),
)
NAMES = [job.name for job in JOBS]
