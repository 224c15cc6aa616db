"""Timelines on demand, made in a separate process and kept in memory (docs/verification.md)."""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, DeferredLock, TimeoutError
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ..errors import Conflict, Unavailable, existing
from ..postgres.database import Database
from ..process.metrics import Metrics
from ..process.tasks import Shared, Task, detached, shielded
from ..storage.replays import replays, verdicts
from .messages import Playback, PlayedBack
from .processes import TIMELINE_MAKER, TimelineProcess

KEPT_BYTES = 4 * 2**20  # of compressed timelines, about two thousand
WAITING = 50  # timelines that may wait to be made; one takes milliseconds
SECONDS = 5.0  # for a timeline, and for the start of the process
IDLE_SECONDS = 600.0  # an idle process ends after this, until the next request


T = TypeVar("T")


class KeptTimeline(NamedTuple):
    """A timeline, compressed by zlib, and its entity tag in quotes."""

    etag: str
    compressed: bytes


class Timelines:
    """Timelines, compressed by zlib, by their entity tags.

    One timeline is made at a time, and only then is its replay read from the database, so that uploads of 1 MiB don't
    add up in memory. All requests for a timeline that is being made wait for the same one.
    """

    name = "timelines"
    _log = Logger()

    def __init__(
        self,
        *,
        database: Database,
        reactor: ReactorBase,
        metrics: Metrics,
        command: tuple[str, ...] = TIMELINE_MAKER,
        kept_bytes: int = KEPT_BYTES,
        waiting: int = WAITING,
    ) -> None:
        self._database = database
        self._reactor = reactor
        self._metrics = metrics
        self._command = command
        self._most_kept = kept_bytes
        self._most_waiting = waiting
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._kept_bytes = 0
        self._making: dict[str, Shared[KeptTimeline]] = {}
        self._lock = DeferredLock()
        self._process: TimelineProcess | None = None
        self._idle: IDelayedCall | None = None
        self._stopped = False

    def stop(self) -> None:
        """End the process, and make no more timelines."""
        self._stopped = True
        self._end()

    def remembered(self, etag: str) -> KeptTimeline | None:
        """The timeline with this entity tag, or None if it isn't in memory."""
        found = self._kept.get(etag)
        if found is None:
            return None
        self._kept.move_to_end(etag)
        self._metrics.timelines.labels("remembered").inc()
        return KeptTimeline(etag, found)

    async def make(self, replay_id: str, etag: str) -> KeptTimeline:
        """Make the timeline of a replay, whose entity tag was just read, unless that timeline is being made already.

        Raises NotFound if the replay was deleted, Conflict if it has no timeline, and Unavailable if too many requests
        wait or the process fails.
        """
        making = self._making.get(etag)
        if making is None:
            making = self._making[etag] = Shared(self._in_turn(self._make, replay_id))
            making.ended.addCallback(lambda ended: self._forget(etag))
        return await making.outcome()

    async def evidence(self, replay_id: str) -> PlayedBack:
        """Return what the moves of a replay prove, and these moves as a timeline, whatever its verdict is.

        It isn't kept, because only admins ask for it. The errors are those of `make`.
        """
        return await shielded(detached(self._in_turn(self._evidence, replay_id)))

    async def _in_turn(self, work: Callable[[str], Task[T]], replay_id: str) -> T:
        """Do this work for a replay after all earlier work; raise Unavailable if too many wait."""
        if len(self._lock.waiting) >= self._most_waiting:
            raise Unavailable
        async with self._lock:
            return await work(replay_id)

    async def _evidence(self, replay_id: str) -> PlayedBack:
        body = existing(await self._database.run(replays.fetch, replay_id), "replay_not_found")
        return await self._play(Playback(body, None))

    def _forget(self, etag: str) -> None:
        del self._making[etag]

    async def _make(self, replay_id: str) -> KeptTimeline:
        source = existing(await self._database.run(verdicts.playback_source, replay_id), "replay_not_found")
        timeline = (await self._play(Playback(source.body, source.verdict))).timeline
        self._metrics.timelines.labels("made").inc()
        if timeline is None:
            raise Conflict("not_playable", "replay can not be played back")
        self._keep(source.etag, timeline)
        return KeptTimeline(source.etag, timeline)

    async def _play(self, playback: Playback) -> PlayedBack:
        """Make a timeline in the process, and log its problem if there is one."""
        process = await self._ready()
        played = await self._within(SECONDS, process, process.make(playback))
        if played is None:
            raise self._failure(process)
        if played.problem is not None:
            self._log.error("a replay can't be played back: {why}", why=played.problem)
        return played

    async def _ready(self) -> TimelineProcess:
        """Return the process, started if there is none."""
        if self._stopped:
            raise Unavailable
        if self._process is None or self._process.ended.called:
            try:
                self._process = TimelineProcess(self._reactor, self._command)
            except OSError as error:
                self._log.error("can't start a process for timelines: {why}", why=error.strerror)
                raise Unavailable from None
        process = self._process
        self._wait_for_idleness()
        if not await self._within(SECONDS, process, process.ready):
            raise self._failure(process)
        return process

    async def _within(self, seconds: float, process: TimelineProcess, work: Deferred[T]) -> T | None:
        """Return the outcome of `work`; after `seconds`, kill the process and return None."""
        try:
            return await shielded(work).addTimeout(seconds, self._reactor)
        except TimeoutError:
            process.kill()
            return None

    def _failure(self, process: TimelineProcess) -> Unavailable:
        if not self._stopped:
            self._log.error("the process for timelines has failed: {why}", why=process.last_words or "no answer")
        process.kill()
        self._process = None
        return Unavailable()

    def _wait_for_idleness(self) -> None:
        """End the process after IDLE_SECONDS without a request."""
        if self._idle is not None and self._idle.active():
            self._idle.reset(IDLE_SECONDS)
        else:
            self._idle = self._reactor.callLater(IDLE_SECONDS, self._end)

    def _end(self) -> None:
        if self._idle is not None and self._idle.active():
            self._idle.cancel()
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _keep(self, etag: str, timeline: bytes) -> None:
        """Keep a timeline in memory, and drop the least recently used ones."""
        self._kept_bytes += len(timeline) - len(self._kept.pop(etag, b""))
        self._kept[etag] = timeline
        while self._kept_bytes > self._most_kept:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1])
