"""Bodies of responses, piece by piece, and the events in them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from twisted.internet.defer import DeferredQueue
from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.policies import TimeoutMixin
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone, ResponseFailed
from twisted.web.http import PotentialDataLoss

from ..rules.events import NAMES, StreamEvent

EVENT_SHAPES = {name: shape for shape, name in NAMES.items()}
SILENCE_SECONDS = 60.0  # a stream has a heartbeat every 25 s


class _Body(Protocol, TimeoutMixin):
    """A body whose connection is paused while a piece waits, and closed after `seconds` without one."""

    transport: Any

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: DeferredQueue[Any] = DeferredQueue()

    def dataReceived(self, data: bytes) -> None:
        self.setTimeout(None)
        self.transport.pauseProducing()
        self._waiting.put(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.setTimeout(None)
        self._waiting.put(reason.value)

    async def next(self) -> bytes | BaseException:
        """Return the next piece, or the reason why there is none."""
        if not self._waiting.pending:
            self.setTimeout(self._seconds)
            self.transport.resumeProducing()
        piece: bytes | BaseException = await self._waiting.get()
        return piece


async def read_pieces(response: Any, seconds: float) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a body as they are wanted.

    Raises ResponseFailed if the connection is lost before the end, or if nothing arrives for this many seconds.
    """
    body = _Body(seconds)
    piece: bytes | BaseException = b""
    response.deliverBody(body)
    try:
        while isinstance(piece := await body.next(), bytes):
            yield piece
        if not isinstance(piece, ResponseDone | PotentialDataLoss):
            raise piece
    finally:
        if isinstance(piece, bytes):  # there may be more
            body.transport.loseConnection()


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
        shape = EVENT_SHAPES.get(fields.get("event", ""))
        return None if shape is None else msgspec.json.decode(fields["data"], type=shape)


async def read_events(response: Any, note_retry: Callable[[float], None]) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events in the body of a Twisted response until the connection is lost; close it at the end."""
    reader = EventReader()
    with suppress(ResponseFailed):
        async with aclosing(read_pieces(response, SILENCE_SECONDS)) as pieces:
            async for piece in pieces:
                for event in reader.read(piece):
                    note_retry(reader.retry_seconds)
                    yield event
