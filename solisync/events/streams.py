"""The streams of a process: their limits, which events each receives, and how they end."""

import resource
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import takewhile
from random import randint
from typing import NamedTuple

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator
from twisted.logger import Logger

from ..errors import Unavailable
from ..postgres.database import Database
from ..process.metrics import Metrics
from ..rules.events import NAMES, RETRY_MS, EndReason, ProgressEvent, VerdictEvent, retry_text
from ..storage.streams import StreamStart
from .bus import Bus
from .live_errors import LiveErrors
from .notices import BoardsChanged, Notice, ProgressStored, SessionsEnded, VerdictStored
from .stream import EncodedEvent, Outlet, Stream, hello
from .stream_upkeep import StreamUpkeep
from .streamed_boards import StreamedBoards

RESERVED = 512  # descriptors for everything else: connections of requests and of the database, logs, pipes
PER_PLAYER = 10
PER_ADDRESS = 10  # an address may have one in this many of all streams
RETRY_SECONDS = (5, 30)
PENDING_SECONDS = 20.0  # longer than a handler may take
SLICE_SECONDS = 0.002  # the reactor serves streams for this long before it turns to other work


class Streams:
    """Up to `wanted` streams, or fewer if open files are limited. The bus passes all notices to `hear`."""

    _log = Logger()

    def __init__(
        self,
        *,
        reactor: ReactorBase,
        database: Database,
        bus: Bus,
        metrics: Metrics,
        errors: LiveErrors,
        wanted: int,
        now: Callable[[], datetime],
    ) -> None:
        self.most = room_for_streams(wanted, raise_limit())
        self._wanted = wanted
        self._reactor = reactor
        self._metrics = metrics
        self._errors = errors
        self._now = now
        self._stopping = False
        self._of_player: dict[str, list[Stream]] = {}  # includes streams that are being opened
        self._of_address: Counter[str] = Counter()
        self._opening: dict[Stream, float] = {}  # each with the time when it is forgotten
        self._open: dict[Stream, None] = {}
        self._cooperator = Cooperator(self._time_slice, partial(reactor.callLater, 0))
        self._boards = StreamedBoards(reactor=reactor, cooperator=self._cooperator, tell=self._tell, errors=errors)
        self._upkeep = StreamUpkeep(
            reactor=reactor,
            database=database,
            now=now,
            hears_all=lambda: bus.hears,
            end=self._end_all,
            tell=self._tell,
            errors=errors,
        )
        self._delivered = {kind: metrics.stream_events.labels(name) for kind, name in NAMES.items()}
        bus.subscribers.append(self.hear)
        bus.on_loss = lambda: self._upkeep.doubt(self._open, greet=True)

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> None:
        """Begin the upkeep of streams."""
        if self.most < self._wanted:
            self._log.warn(
                "at most {most} streams, not {wanted}: raise the limit of open files (LimitNOFILE, ulimit -n)",
                most=self.most,
                wanted=self._wanted,
            )
        self._upkeep.start()

    async def stop(self) -> None:
        """End all streams, and refuse new ones."""
        self._stopping = True
        self._upkeep.stop()
        await self._end_all(self._open, "stopping")

    def reserve(self, *, player: str, expiry: int, address: str, boards: tuple[str, ...]) -> Stream:
        """Reserve a stream until it is `open` or forgotten; raises Unavailable if there are too many."""
        self._forget_late()
        count = len(self._open) + len(self._opening)
        if self._stopping or count >= self.most or self._of_address[address] >= max(1, self.most // PER_ADDRESS):
            raise _unavailable()
        stream = Stream(player=player, expiry=expiry, address=address, boards=boards)
        self._opening[stream] = self._reactor.seconds() + PENDING_SECONDS
        self._of_player.setdefault(player, []).append(stream)
        self._of_address[address] += 1
        return stream

    def admit(self, stream: Stream, start: StreamStart) -> "OpenedStream":
        """Admit the stream, with its first data; raises Unavailable if the process stops."""
        if self._stopping:
            raise _unavailable()
        stream.session_id = start.session_id or ""
        if stream.revision is None:
            stream.revision = start.revision
        stream.doubtful = stream.revision != start.revision  # a notice came during the query, perhaps a late one
        return OpenedStream(self, stream)

    def forget(self, stream: Stream) -> None:
        """Release a reserved stream."""
        if self._opening.pop(stream, None) is not None:
            self._remove(stream)

    def open(self, stream: Stream, outlet: Outlet) -> None:
        """Open an admitted stream; if the player has too many, the oldest ends."""
        del self._opening[stream]
        self._open[stream] = None
        self._boards.add(stream)
        self._upkeep.add(stream)
        self._upkeep.suspect((stream,))  # its session may have ended after the query
        if stream.doubtful:
            self._upkeep.doubt((stream,))
        self._metrics.streams_opened.inc()
        self._metrics.streams.inc()
        stream.begin(outlet, _retry())
        self._tell(stream, hello(self._now(), stream.revision))
        others = [other for other in self._of_player[stream.player] if other in self._open]
        if len(others) > PER_PLAYER:
            self._end(others[0], "superseded")

    def drained(self, stream: Stream) -> None:
        """Continue a stream whose client has read everything."""
        self._count(*stream.go_on())
        if stream.ended is not None:
            self._end(stream, stream.ended)

    def lost(self, stream: Stream, *, unread: bool) -> None:
        """Close a stream whose connection was lost, perhaps cut because of `unread` data, perhaps before it opened."""
        self.forget(stream)
        self._close(stream, "unread" if unread else "left")

    def hear(self, notice: Notice) -> None:
        """Send a notice's events to the streams that it concerns."""
        match notice:
            case ProgressStored(player, revision, session_id):
                self._tell_progress(self._of_player.get(player, ()), revision, session_id)
            case VerdictStored(player, replay_id, status):
                if player in self._of_player:
                    event = EncodedEvent(VerdictEvent(replay_id, status))
                    for stream in self._of_player[player]:
                        self._tell(stream, event)
            case BoardsChanged(boards):
                self._boards.change(boards)
            case SessionsEnded(player):
                self._upkeep.suspect(
                    stream
                    for stream in (self._open if player is None else self._of_player.get(player, ()))
                    if stream.open
                )

    def _tell_progress(self, streams: Iterable[Stream], revision: str, session_id: str | None) -> None:
        events: dict[bool, EncodedEvent] = {}
        for stream in streams:
            own = stream.session_id == session_id
            event = events.get(own) or events.setdefault(own, EncodedEvent(ProgressEvent(revision, own)))
            stream.revision = revision
            self._tell(stream, event)

    def _tell(self, stream: Stream, event: EncodedEvent) -> None:
        """Write an event to a stream, immediately or when its client reads; skip a stream that isn't open yet."""
        if not stream.open:
            return
        outcome = stream.send(event)
        if outcome:
            self._count(event)
        elif outcome is None:
            self._metrics.stream_events_coalesced.inc()

    def _count(self, *events: EncodedEvent) -> None:
        for event in events:
            self._delivered[event.kind].inc()

    def _end_all(self, streams: Iterable[Stream], reason: EndReason) -> Deferred[Iterator[None] | None]:
        """End streams, a few in each turn of the reactor; the Deferred fires when all have ended."""

        def ending() -> Iterator[None]:
            for stream in [*streams]:
                self._end(stream, reason)
                yield

        done = self._cooperator.cooperate(ending()).whenDone()
        return done.addErrback(self._errors.failed, "not all streams were ended")

    def _end(self, stream: Stream, reason: EndReason) -> None:
        if self._close(stream, reason):
            stream.end(reason, _retry())

    def _close(self, stream: Stream, reason: str) -> bool:
        """Forget an open stream; False if it isn't open any more."""
        if self._open.pop(stream, self) is self:
            return False
        self._upkeep.remove(stream)
        self._remove(stream)
        self._metrics.streams.dec()
        self._metrics.streams_ended.labels(reason).inc()
        return True

    def _remove(self, stream: Stream) -> None:
        self._boards.remove(stream)
        streams = self._of_player[stream.player]
        streams.remove(stream)
        if not streams:
            del self._of_player[stream.player]
        self._of_address[stream.address] -= 1
        if not self._of_address[stream.address]:
            del self._of_address[stream.address]

    def _forget_late(self) -> None:
        """Forget reserved streams whose clients left before they were open."""
        now = self._reactor.seconds()
        for stream in [*takewhile(lambda stream: self._opening[stream] <= now, self._opening)]:
            self.forget(stream)

    def _time_slice(self) -> Callable[[], bool]:
        end = self._reactor.seconds() + SLICE_SECONDS
        return lambda: self._reactor.seconds() >= end


class OpenedStream(NamedTuple):
    """An admitted stream, for the connection on which its client waits."""

    streams: Streams
    stream: Stream

    def begin(self, outlet: Outlet) -> None:
        """Open the stream with this outlet."""
        self.streams.open(self.stream, outlet)

    def drained(self) -> None:
        """Continue the stream, because the outlet isn't full any more."""
        self.streams.drained(self.stream)

    def lost(self, *, unread: bool) -> None:
        """Close the stream after a lost connection, which may have been cut because of `unread` data."""
        self.streams.lost(self.stream, unread=unread)


def _unavailable() -> Unavailable:
    return Unavailable(randint(*RETRY_SECONDS))  # noqa: S311


def _retry() -> bytes:
    """Text that sets when to reopen a stream; it is random, so that clients don't all reconnect at the same time."""
    return retry_text(randint(*RETRY_MS))  # noqa: S311


def raise_limit() -> int:
    """Raise the soft limit of open files to the hard one, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # the system itself doesn't allow the hard limit
        return soft
    return hard


def room_for_streams(wanted: int, limit: int) -> int:
    """The number of streams, at most `wanted`, that a process may have with this limit of open files."""
    if limit == resource.RLIM_INFINITY:
        return wanted
    return max(0, min(wanted, (limit - RESERVED) // 2))
