"""The history of accounts, stored as rows outside of the requests that cause the events (docs/security.md "Logs")."""

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
from ..process.tasks import shielded
from ..storage.players import history
from ..storage.players.history import Occurrence

EVERY_SECONDS = 1.0
QUEUE = 10_000  # distinct events that wait to be stored
BATCH = 1_000

# A session's row has its last refresh, and the record of acts has the operators' acts.
_ELSEWHERE: frozenset[Event] = frozenset({"refresh", "refresh repeated", "login repeated", "act"})

# The only events that are stored without a player: no other kind would be useful.
_NAMELESS: frozenset[Event] = frozenset({"login failed", "recovery refused"})


class History:
    """Observes the audit trail, and stores its events once a second.

    Equal events within that second, from the same client, become one row with a count. DAILY_MAX of the storage limits
    the rows of each player and day. Events are lost if the queue is full or the database fails; `lost` is called
    with their number. They wait in the queue while there is no connection.
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
        self._waiting: dict[Happened, tuple[float, int]] = {}  # the time of the first, and the number
        self._being_stored = 0  # the number of events taken out of `_waiting` that may not be stored yet
        self._loop = LoopingCall(self._round)
        self._loop.clock = reactor

    def observe(self, happened: Happened) -> None:
        """Add an event to the queue."""
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
        """Store the remaining events within this time; events that take longer are lost."""
        if self._loop.running:
            self._loop.stop()
        with suppress(TimeoutError):
            await shielded(self._round()).addTimeout(seconds, self._reactor)
        if left := len(self._waiting) + self._being_stored:
            self._lost(left)
            self._log.warn("{count} events of accounts were not stored before the end", count=left)

    def _round(self) -> "Deferred[None]":
        # handles failures here, because a LoopingCall ends at the first one
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
