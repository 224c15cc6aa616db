"""Keeps what happens to accounts as rows, outside of the requests in which it happens (docs/security.md "Logs")."""

from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ..errors import DatabaseError, Unavailable
from ..postgres.database import Database
from ..process.audit import Event, Happened
from ..process.shielded import shielded
from ..storage import history
from ..storage.history import Occurrence

EVERY_SECONDS = 1.0
QUEUE = 10_000  # different events that wait to be stored
BATCH = 1_000

# A session says when it was last refreshed, and the record of acts what operators have done.
_ELSEWHERE: frozenset[Event] = frozenset({"refresh", "refresh repeated", "act"})

# Of somebody whom the service doesn't know, only these: anything else would be of no use to anybody.
_NAMELESS: frozenset[Event] = frozenset({"login failed", "recovery refused"})


class History:
    """Observes the audit trail, and stores what it has seen once a second.

    What is the same within that second, client included, is one row with a count. Of each player and day, so many rows
    are stored and no more (`storage.history.DAILY_MAX`). Events are lost when the queue is full or the database fails;
    `lost` is called with their number. While there is no connection, they wait in the queue.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        database: Database,
        reactor: ReactorBase,
        enabled: bool,
        lost: Callable[[int], None],
        queue: int = QUEUE,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._reactor = reactor
        self._enabled = enabled
        self._lost = lost
        self._queue = queue
        self._batch = batch
        self._waiting: dict[Happened, tuple[float, int]] = {}  # when for the first time, and how often
        self._being_stored = 0  # how many events have left `_waiting`, and are perhaps not stored yet
        self._loop = LoopingCall(self._round)
        self._loop.clock = reactor

    def observe(self, happened: Happened) -> None:
        """Put an event into the queue."""
        if not self._enabled or happened.event in _ELSEWHERE:
            return
        if happened.user_id is None and happened.event not in _NAMELESS:
            return
        first, times = self._waiting.get(happened, (self._reactor.seconds(), 0))
        if not times and len(self._waiting) >= self._queue:
            self._lost(1)
        else:
            self._waiting[happened] = first, times + 1

    def start(self) -> None:
        """Begin to store events."""
        self._loop.start(EVERY_SECONDS, now=False)

    async def stop(self, seconds: float) -> None:
        """Store the remaining events within this time; those that are not stored by then are lost."""
        if self._loop.running:
            self._loop.stop()
        with suppress(TimeoutError):
            await shielded(self._round()).addTimeout(seconds, self._reactor)
        if left := len(self._waiting) + self._being_stored:
            self._lost(left)
            self._log.warn("{count} events of accounts were not stored before the end", count=left)

    def _round(self) -> "Deferred[None]":
        # a LoopingCall ends at the first failure
        return Deferred.fromCoroutine(self.flush()).addErrback(
            lambda failure: self._log.failure("could not store what happened to accounts", failure)
        )

    async def flush(self) -> None:
        """Store the whole queue, batch after batch."""
        while self._waiting:
            taken = {each: self._waiting.pop(each) for each in [*islice(self._waiting, self._batch)]}
            now = self._reactor.seconds()
            batch = [Occurrence(each, now - first, times) for each, (first, times) in taken.items()]
            self._being_stored += len(batch)
            try:
                await self._database.run(history.store, batch)
            except Unavailable:
                for each, (first, times) in taken.items():  # some may have happened again
                    self._waiting[each] = first, times + self._waiting.get(each, (first, 0))[1]
                return
            except DatabaseError as error:
                self._lost(len(batch))
                self._log.warn("{count} events of accounts are lost: {error}", count=len(batch), error=error)
            finally:
                self._being_stored -= len(batch)
