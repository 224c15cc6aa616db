"""Reading the events of a stream."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec
from twisted.internet.defer import DeferredQueue
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from ..rules.events import NAMES, StreamEvent

SHAPES = {name: shape for shape, name in NAMES.items()}


class EventReader:
    """Reads Server-Sent Events from pieces of any size; skips unknown events.

    `retry_seconds` is the service's latest value for when to open the next stream.
    """

    def __init__(self) -> None:
        self.retry_seconds = 1.0
        self._rest = b""

    def read(self, data: bytes) -> list[StreamEvent]:
        """Return the events that end in this piece."""
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        return [event for block in blocks if (event := self._event(block)) is not None]

    def _event(self, block: bytes) -> StreamEvent | None:
        fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if ": " in line)
        if "retry" in fields:
            self.retry_seconds = int(fields["retry"]) / 1_000
        shape = SHAPES.get(fields.get("event", ""))
        return None if shape is None else msgspec.json.decode(fields["data"], type=shape)


class _Body(Protocol):
    def __init__(self, reader: EventReader) -> None:
        self.events: DeferredQueue[StreamEvent | None] = DeferredQueue()
        self._reader = reader

    def dataReceived(self, data: bytes) -> None:
        for event in self._reader.read(data):
            self.events.put(event)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.events.put(None)


async def read_events(response: Any, note_retry: Callable[[float], None]) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events in the body of a Twisted response; closes the connection at the end."""
    reader = EventReader()
    body = _Body(reader)
    response.deliverBody(body)
    try:
        while (event := await body.events.get()) is not None:
            note_retry(reader.retry_seconds)
            yield event
    finally:
        if body.transport is not None:
            body.transport.loseConnection()
