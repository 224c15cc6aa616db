"""One stream: what its client has been told, and the few events that wait while the client takes none."""

from datetime import datetime
from typing import Protocol

from ..rules.events import (
    BoardEvent,
    EndEvent,
    EndReason,
    HelloEvent,
    ProgressEvent,
    StreamEvent,
    VerdictEvent,
    event_text,
)

VERDICTS_MAX = 20  # that wait; a client that misses more opens another stream


class Outlet(Protocol):
    """Where a stream writes to: the connection of its client."""

    @property
    def full(self) -> bool:
        """Whether the client has stopped to take what it was sent."""

    def write(self, data: bytes) -> None:
        """Send data."""

    def end(self, data: bytes) -> None:
        """Send the last data and close the connection; cut it if it is full."""


class EncodedEvent:
    """An event for any number of streams, encoded once; of those with one `key` only the newest counts."""

    __slots__ = ("key", "kind", "text")

    def __init__(self, event: StreamEvent) -> None:
        self.kind = type(event)
        self.text = event_text(event)
        self.key: object = ProgressEvent  # `hello` has the revision, too
        if isinstance(event, BoardEvent):
            self.key = event.board
        elif isinstance(event, VerdictEvent):
            self.key = event.replay_id


class Stream:
    """A stream of a player; it is open once it has an outlet.

    `expiry` is that of its access token, in seconds since 1970; `address` counts its streams; `boards` are those that
    it names. `session_id` is empty until the stream is admitted. `revision` is what the client knows of progress, and
    `slot` when the stream has its turn (solisync.events.stream_upkeep).
    """

    __slots__ = (
        "_outlet",
        "_waiting",
        "address",
        "boards",
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
        self.ended: EndReason | None = None
        self.slot = 0
        self._outlet: Outlet | None = None
        self._waiting: dict[object, EncodedEvent] | None = None

    @property
    def open(self) -> bool:
        """Whether the stream has a client."""
        return self._outlet is not None

    def begin(self, outlet: Outlet, first: bytes) -> None:
        """Open the stream, with its first line."""
        self._outlet = outlet
        outlet.write(first)

    def send(self, event: EncodedEvent) -> bool | None:
        """Write an event; False if it waits, None if it waits and an older one doesn't any more.

        A stream for which too many events wait is to end, as `ended` says from then on.
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
        """Write what waits, until the outlet is full; returns what has been written."""
        written: list[EncodedEvent] = []
        outlet = self._outlet
        while outlet is not None and self._waiting and not outlet.full:
            event = self._waiting.pop(next(iter(self._waiting)))
            outlet.write(event.text)
            written.append(event)
        return written

    def write(self, data: bytes) -> None:
        """Write what need not arrive, unless the outlet is full."""
        if self._outlet is not None and not self._outlet.full:
            self._outlet.write(data)

    def end(self, reason: EndReason, retry: bytes) -> None:
        """Say why the stream ends, and close it."""
        self.ended, self._waiting = reason, None
        outlet, self._outlet = self._outlet, None
        if outlet is not None:
            outlet.end(retry + event_text(EndEvent(reason)))


def hello(server_time: datetime, revision: str | None) -> EncodedEvent:
    """The event with which a stream begins."""
    return EncodedEvent(HelloEvent(server_time, revision))
