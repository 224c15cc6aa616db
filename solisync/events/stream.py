"""A stream: its state, and the few events that wait while its client reads nothing."""

from datetime import datetime
from typing import Protocol

from ..rules.events import (
    BoardEvent,
    EndEvent,
    EndReason,
    HelloEvent,
    StreamEvent,
    VerdictEvent,
    event_text,
)

VERDICTS_MAX = 20  # waiting verdicts; a client that misses more opens another stream


class Outlet(Protocol):
    """The destination of a stream: the connection of its client."""

    @property
    def full(self) -> bool:
        """True while the client isn't reading what was sent."""

    def write(self, data: bytes) -> None:
        """Send data."""

    def end(self, data: bytes) -> None:
        """Send the last data and close the connection; if it is full, cut it."""


class EncodedEvent:
    """An event, encoded once for all streams; of events with the same `key` only the newest counts."""

    __slots__ = ("key", "kind", "text")

    def __init__(self, event: StreamEvent) -> None:
        self.kind = type(event)
        self.text = event_text(event)
        self.key: object = self.kind
        if isinstance(event, BoardEvent):
            self.key = event.board
        elif isinstance(event, VerdictEvent):
            self.key = event.replay_id


class Stream:
    """A player's stream, which is open once it has an outlet.

    `expiry` is the expiry of its access token, in seconds since 1970. `address` is the address that its limit counts.
    `boards` are the boards that it names. `session_id` is empty until the stream is admitted. `revision` is the
    revision of the progress that the client knows; if `doubtful`, it may be older than the stored one. `slot` is the
    stream's turn (solisync.events.stream_upkeep).
    """

    __slots__ = (
        "_outlet",
        "_waiting",
        "address",
        "boards",
        "doubtful",
        "ended",
        "expiry",
        "player",
        "revision",
        "session_id",
        "slot",
    )

    def __init__(self, *, player: str, expiry: int, address: str, boards: tuple[str, ...]) -> None:
        self.player = player
        self.expiry = expiry
        self.address = address
        self.boards = boards
        self.session_id = ""
        self.revision: str | None = None
        self.doubtful = False
        self.ended: EndReason | None = None
        self.slot = 0
        self._outlet: Outlet | None = None
        self._waiting: dict[object, EncodedEvent] | None = None

    @property
    def open(self) -> bool:
        """True while the stream has an outlet."""
        return self._outlet is not None

    def begin(self, outlet: Outlet, first: bytes) -> None:
        """Open the stream and write its first line."""
        self._outlet = outlet
        outlet.write(first)

    def send(self, event: EncodedEvent) -> bool | None:
        """Write an event; return True if it was sent, False if it waits, and None if it replaces a waiting one.

        If too many events wait, `ended` has the reason why the stream must end.
        """
        outlet = self._outlet
        if outlet is not None and not outlet.full and not self._waiting:
            outlet.write(event.text)
            return True
        if self._waiting is None:
            self._waiting = {}
        replaced = self._waiting.pop(event.key, None)
        if self.ended is None:
            self._waiting[event.key] = event
        if sum(waiting.kind is VerdictEvent for waiting in self._waiting.values()) > VERDICTS_MAX:
            self.ended, self._waiting = "slow", {}
        return None if replaced is not None else False

    def go_on(self) -> list[EncodedEvent]:
        """Write waiting events until the outlet is full; return the written ones."""
        written: list[EncodedEvent] = []
        outlet = self._outlet
        while outlet is not None and self._waiting and not outlet.full:
            event = self._waiting.pop(next(iter(self._waiting)))
            outlet.write(event.text)
            written.append(event)
        return written

    def write(self, data: bytes) -> None:
        """Write data that may be lost, unless the outlet is full."""
        if self._outlet is not None and not self._outlet.full:
            self._outlet.write(data)

    def end(self, reason: EndReason, retry: bytes) -> None:
        """Send the reason why the stream ends, and close it."""
        self.ended, self._waiting = reason, None
        outlet, self._outlet = self._outlet, None
        if outlet is not None:
            outlet.end(retry + event_text(EndEvent(reason)))


def hello(server_time: datetime, revision: str | None) -> EncodedEvent:
    """The first event of a stream."""
    return EncodedEvent(HelloEvent(server_time, revision))
