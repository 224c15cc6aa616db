"""The work on the queues of replays: send each to a checker process, and store the verdict (docs/verification.md)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred, TimeoutError, gatherResults
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ..errors import DatabaseError, Interrupted, Unavailable
from ..events.bus import Bus
from ..events.notices import BoardsChanged, Notice, ReplayStored, VerdictStored, boards_changed
from ..klondike import ENGINE_VERSION, Proved, Reason, Status, Verdict
from ..postgres.database import Database
from ..process.child import ending
from ..process.metrics import Metrics
from ..process.tasks import Task, shielded
from ..rules.boards import days_of
from ..storage.replays import boards, checks, rechecks
from ..storage.replays.checks import Claim, ClaimedReplay
from .messages import Answer
from .processes import CHECKER, CheckerProcess

PAGE = 500

T = TypeVar("T")

CRASHED = Verdict(status=Status.UNDECIDED, reason=Reason.CRASHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTimes:
    """The times of the queues of checks, in seconds."""

    claim: float = 30.0  # a claim lapses after this time without a renewal
    renew: float = 10.0  # the interval of renewals of a claim; a checker of the lowest priority may be slow
    literal: float = 60.0  # a literal check that takes longer has hung, and its checker is killed
    search: float = 600.0  # the same for a search: 5 s of processor time at a hundredth of a busy core
    poll: float = 2.0  # the interval of looking for work without any notification
    ready: float = 30.0  # the time limit for the start of a process
    restart: float = 2.0  # the pause before an ended process is replaced
    retry: float = 1.0  # the pause after a failure of the database
    look: float = 10.0  # the interval of measuring the queues
    look_soon: float = 1.0  # the same while old replays are checked


TIMES = QueueTimes()


class Checking:
    """Checks replays in `count` processes; with 0 it does nothing. It calls `changed` when a verdict has changed.

    Each process has two loops, one for each queue, so that a literal check doesn't wait for a search: the process
    interrupts the search. No transaction is open during a check. The bus announces replays stored by any node.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        database: Database,
        reactor: ReactorBase,
        metrics: Metrics,
        count: int,
        changed: Callable[[], None],
        bus: Bus,
        command: tuple[str, ...] = CHECKER,
        times: QueueTimes = TIMES,
    ) -> None:
        self._database = database
        self._reactor = reactor
        self._metrics = metrics
        self._count = count
        self._changed = changed
        self._bus = bus
        self._command = command
        self._times = times
        self._stopping = False
        self._processes: set[CheckerProcess] = set()
        self._running: list[Deferred[None]] = []
        self._pauses: set[Deferred[None]] = set()
        self._resting: dict[bool, set[Deferred[None]]] = {False: set(), True: set()}  # while a queue is empty
        self._added = {False: 0, True: 0}  # the number of additions to each queue
        self._healthy = True
        bus.subscribers.append(self._hear)

    def start(self) -> None:
        """Begin to check; the database must be open."""
        if self._count:
            self._begin(self._look_after_queues())
            for _ in range(self._count):
                self._begin(self._keep_checker())

    async def stop(self) -> None:
        """Kill the processes, and release their claims."""
        self._stopping = True
        for process in self._processes:
            process.kill()
        for pause in [*self._pauses, *self._resting[False], *self._resting[True]]:
            pause.cancel()
        await gatherResults(self._running)

    def _begin(self, work: Task[None]) -> None:
        running = Deferred.fromCoroutine(work)
        self._running.append(running.addErrback(lambda failure: self._log.failure("checking has stopped", failure)))

    def _hear(self, notice: Notice) -> None:
        if isinstance(notice, ReplayStored):
            self._wake(search=False)

    def _wake(self, *, search: bool) -> None:
        """Make idle loops look into a queue, because there may be a replay."""
        self._added[search] += 1
        for pause in [*self._resting[search]]:
            pause.cancel()

    async def _pause(self, seconds: float, among: set[Deferred[None]] | None = None) -> None:
        if not self._stopping:
            pauses = self._pauses if among is None else among
            pause: Deferred[None] = deferLater(self._reactor, seconds)
            pauses.add(pause)
            with suppress(CancelledError):
                await pause
            pauses.discard(pause)

    async def _keep_checker(self) -> None:
        """Keep a process running, and feed it from the two queues."""
        while not self._stopping:
            try:
                process = CheckerProcess(self._reactor, self._command)
            except OSError as error:
                self._log.error("can't start a checker: {why}", why=error.strerror)
                await self._pause(self._times.restart)
                continue
            self._processes.add(process)
            if await self._is_ready(process):
                try:
                    await gatherResults(
                        [Deferred.fromCoroutine(self._work(process, search=search)) for search in (False, True)],
                        consumeErrors=True,
                    )
                except Exception:
                    self._log.failure("a check failed")
                    process.kill()
            how = ending(await process.ended)
            self._processes.discard(process)
            if not self._stopping and not process.retired:
                how += f": {process.last_words}" if process.last_words else ""
                self._log.error("a checker ended {how}; starting another", how=how)
                await self._pause(self._times.restart)

    async def _is_ready(self, process: CheckerProcess) -> bool:
        try:
            return await shielded(process.ready).addTimeout(self._times.ready, self._reactor)
        except TimeoutError:
            process.kill()
            return False

    async def _work(self, process: CheckerProcess, *, search: bool) -> None:
        """Check the replays of one of the queues, one after the other, until the process ends."""
        claim_next = partial(self._database.run, checks.claim, search=search, seconds=self._times.claim)
        while not process.ended.called and not self._stopping:
            added = self._added[search]
            claim = await self._patiently(claim_next)
            if claim is None:
                if self._added[search] == added:
                    await self._pause(self._times.poll, among=self._resting[search])
            elif claim.attempt > checks.ATTEMPTS:
                await self._store(claim, CRASHED, engine=ENGINE_VERSION)
            elif (replay := await self._read(claim)) is not None:
                await self._check(process, claim, replay, search=search)

    async def _read(self, claim: Claim) -> ClaimedReplay | None:
        """Return the replay of a claim, or None if it is deleted or unreadable: then the claim lapses and counts."""
        try:
            return await self._database.run(checks.read, claim)
        except Exception as error:  # a damaged row must not block other replays
            self._log.error("can't read a replay to check: {error!r}", error=error)
            return None

    async def _check(self, process: CheckerProcess, claim: Claim, replay: ClaimedReplay, *, search: bool) -> None:
        answered = process.check(replay.body, search=search)
        replay = replace(replay, body=b"")
        claim, answer = await self._wait(
            process, claim, answered, self._times.search if search else self._times.literal
        )
        if answer is None:
            if self._stopping or process.retired:
                with suppress(DatabaseError, Unavailable):
                    await self._database.run(checks.release, claim)
            return  # otherwise the claim lapses, and another loop claims the replay
        self._metrics.check_cpu.inc(answer.cpu_seconds)
        if answer.verdict.status is Status.PENDING:
            await self._patiently(lambda: self._database.run(checks.search, claim))
            self._wake(search=True)
        else:
            days = None
            if answer.verdict.status is Status.VERIFIED:
                days = days_of(mode=replay.mode, seed=replay.seed, received_at=replay.received_at) or None
            await self._store(
                claim,
                answer.verdict,
                engine=answer.engine,
                timeline_digest=answer.timeline_digest,
                days=days,
                proved=answer.proved,
            )

    async def _wait(
        self, process: CheckerProcess, claim: Claim, answered: Deferred[Answer | None], seconds: float
    ) -> tuple[Claim, Answer | None]:
        """Wait for the answer and renew the claim; kill the process if it takes too long."""
        deadline = self._reactor.seconds() + seconds
        while True:
            try:
                return claim, await shielded(answered).addTimeout(self._times.renew, self._reactor)
            except TimeoutError:
                if self._reactor.seconds() > deadline:
                    process.kill()
            with suppress(DatabaseError, Unavailable):
                until = await self._database.run(checks.renew, claim, seconds=self._times.claim)
                claim = replace(claim, until=until or claim.until)

    async def _store(
        self,
        claim: Claim,
        verdict: Verdict,
        *,
        engine: int,
        timeline_digest: bytes | None = None,
        days: list[str] | None = None,
        proved: Proved | None = None,
    ) -> None:
        """Store a verdict, and publish it with the boards that it changes, unless the replay had it already."""
        uncertain = False  # whether a failed attempt may have been committed

        async def store() -> tuple[bool, tuple[str, ...]]:
            nonlocal uncertain
            try:
                return await self._database.transact(
                    boards.changed_by,
                    claim.user_id,
                    checks.settle,
                    claim,
                    verdict,
                    engine=engine,
                    timeline_digest=timeline_digest,
                    days=days,
                    proved=proved,
                )
            except Interrupted:
                uncertain = True
                raise

        stored = await self._patiently(store)
        if stored is not None and (stored[0] or uncertain):
            self._metrics.verdicts.labels(verdict.status.value).inc()
            self._changed()
            notice: Notice = VerdictStored(claim.user_id, claim.replay_id, verdict.status.value)
            self._bus.publish(notice, *([BoardsChanged()] if uncertain else boards_changed(stored[1])))

    async def _look_after_queues(self) -> None:
        """Measure the queues, and put old replays into them when they are empty."""
        while not self._stopping:
            waiting = await self._patiently(lambda: self._database.run(checks.waiting))
            soon = False
            if waiting is not None:
                self._metrics.checks(waiting.literal, waiting.search, waiting.old, waiting.oldest_seconds)
                soon = waiting.old > 0 or (not waiting.literal and not waiting.search and await self._refill())
            await self._pause(self._times.look_soon if soon else self._times.look)

    async def _refill(self) -> bool:
        """Put old replays into the empty queues; return whether there were any."""
        sweep = partial(self._database.run, rechecks.sweep, most=PAGE)
        outdated = partial(self._database.run, rechecks.enqueue_outdated, engine=ENGINE_VERSION, most=PAGE)
        while (added := await self._patiently(sweep)) == 0 and not self._stopping:
            pass  # a page whose replays all have verdicts
        return bool(added or await self._patiently(outdated))

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Run work on the database repeatedly until it succeeds; return None if it fails while the service stops."""
        while True:
            try:
                result = await work()
            except (DatabaseError, Unavailable) as error:
                if self._stopping:
                    return None
                if self._healthy:
                    self._log.warn("checking is postponed: {error}", error=error)
                self._healthy = False
                await self._pause(self._times.retry)
            else:
                self._healthy = True
                return result
