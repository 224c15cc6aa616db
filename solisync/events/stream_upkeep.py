"""Upkeep of all streams in turn: heartbeats, expired tokens, ended sessions, and `hello` after a loss.

One timer serves all streams. Each stream has its turn once a minute, and the turns are spread evenly over the ticks.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from typing import TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from ..errors import DatabaseError, Unavailable
from ..postgres.database import Database
from ..process.tasks import Task
from ..rules.events import HEARTBEAT, EndReason
from ..storage import streams
from .live_errors import LiveErrors
from .stream import EncodedEvent, Stream, hello

T = TypeVar("T")

TICK_SECONDS = 0.25
SLOTS = 100
HEARTBEAT_TICKS = 100  # 25 s
SWEEP_TICKS = 240  # 60 s
LOOKED_AT_MAX = 500  # sessions checked by a statement
UNSURE_MAX = 250  # revisions compared by a statement, one statement a tick: 1,000 in a second
EXPIRY_SECONDS = 64  # the precision with which streams are sorted by the expiry of their tokens


class StreamUpkeep:
    """Maintains all streams in turn; `end` ends streams for a reason, `tell` writes an event to a stream.

    `hears_all` returns whether this process receives notices of all commits. While it doesn't, the revisions of all
    streams are compared once a minute.
    """

    def __init__(
        self,
        *,
        reactor: ReactorBase,
        database: Database,
        now: Callable[[], datetime],
        hears_all: Callable[[], bool],
        end: Callable[[Iterable[Stream], EndReason], object],
        tell: Callable[[Stream, EncodedEvent], None],
        errors: LiveErrors,
    ) -> None:
        self._reactor = reactor
        self._database = database
        self._now = now
        self._hears_all = hears_all
        self._end = end
        self._tell = tell
        self._errors = errors
        self._slots: list[dict[Stream, None]] = [{} for _ in range(SLOTS)]
        self._by_expiry: dict[int, dict[Stream, None]] = {}
        self._suspects: dict[Stream, None] = {}  # streams whose session may have ended
        self._unsure: dict[Stream, bool] = {}  # streams that may have missed an event; True: `hello` in any case
        self._looking = self._comparing = False
        self._next_slot = self._ticks = 0
        self._timer: IDelayedCall | None = None

    def start(self) -> None:
        """Start the timer."""
        self._timer = self._reactor.callLater(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def add(self, stream: Stream) -> None:
        """Maintain this stream from now on."""
        self._next_slot = stream.slot = (self._next_slot + 1) % SLOTS
        self._slots[stream.slot][stream] = None
        self._by_expiry.setdefault(stream.expiry // EXPIRY_SECONDS, {})[stream] = None

    def remove(self, stream: Stream) -> None:
        """Stop maintaining this stream."""
        self._slots[stream.slot].pop(stream, None)
        alike = self._by_expiry.get(stream.expiry // EXPIRY_SECONDS, {})
        alike.pop(stream, None)
        if not alike:
            self._by_expiry.pop(stream.expiry // EXPIRY_SECONDS, None)
        self._suspects.pop(stream, None)
        self._unsure.pop(stream, None)

    def suspect(self, some: Iterable[Stream]) -> None:
        """Check soon whether the sessions of these streams have ended."""
        self._suspects.update(dict.fromkeys(some))

    def doubt(self, some: Iterable[Stream], *, greet: bool = False) -> None:
        """Compare these streams soon, because they may have missed progress.

        With `greet`, each gets `hello`, because it may have missed an event that no revision shows.
        """
        for stream in some:
            self._unsure[stream] = greet or self._unsure.get(stream, False)

    def _tick(self) -> None:
        self._timer = self._reactor.callLater(TICK_SECONDS, self._tick)
        self._ticks += 1
        for stream in self._slots[self._ticks * SLOTS // HEARTBEAT_TICKS % SLOTS]:
            stream.write(HEARTBEAT)
        self._sweep()
        self._end_expired()
        if self._suspects and not self._looking:
            self._run(self._look(_take(self._suspects, LOOKED_AT_MAX)))
        if self._unsure and not self._comparing:
            self._run(self._compare(_take(self._unsure, UNSURE_MAX)))

    def _run(self, work: Task[None]) -> None:
        Deferred.fromCoroutine(work).addErrback(self._errors.failed, "a round has failed")

    def _sweep(self) -> None:
        """Schedule a check of the next streams' sessions."""
        before, until = ((self._ticks + more) * SLOTS // SWEEP_TICKS for more in (-1, 0))
        for number in range(before, until):
            slot = self._slots[number % SLOTS]
            self._suspects.update(slot)
            if not self._hears_all():
                self.doubt(slot)

    def _end_expired(self) -> None:
        now = self._now().timestamp()
        for key in [key for key in self._by_expiry if key * EXPIRY_SECONDS <= now]:
            alike = self._by_expiry[key]
            due = [stream for stream in alike if stream.expiry <= now]
            for stream in due:
                del alike[stream]
            self._end(due, "token_expired")

    async def _look(self, some: dict[Stream, None]) -> None:
        """End the streams whose sessions have ended."""
        self._looking = True
        try:
            ended = await self._database.run(streams.ended, [(stream.player, stream.session_id) for stream in some])
        except (DatabaseError, Unavailable) as error:
            self._errors.note("database", f"the sessions of streams can't be looked up, still trying: {error}")
            self.suspect(stream for stream in some if stream.open)
            return
        finally:
            self._looking = False
        for reason in {*ended.values()}:
            self._end([stream for stream in some if ended.get(stream.session_id) == reason], reason)

    async def _compare(self, some: dict[Stream, bool]) -> None:
        """Send `hello` again to the streams that have missed a revision, and to those to greet."""
        self._comparing = True
        known = [(stream, greet, stream.revision) for stream, greet in some.items()]
        try:
            stored = await self._database.run(streams.revisions, [stream.player for stream in some])
        except (DatabaseError, Unavailable) as error:
            self._errors.note("database", f"the revisions of streams can't be looked up, still trying: {error}")
            for stream, greet in some.items():
                self.doubt([stream] if stream.open else (), greet=greet)
            return
        finally:
            self._comparing = False
        for stream, greet, revision in known:
            newest = stored.get(stream.player)
            if stream.revision != revision:  # it received a newer one during the query
                newest = stream.revision
            if greet or newest != stream.revision:
                stream.revision = newest
                self._tell(stream, hello(self._now(), newest))


def _take(streams: dict[Stream, T], most: int) -> dict[Stream, T]:
    """Remove and return the first streams."""
    return {stream: streams.pop(stream) for stream in [*islice(streams, most)]}
