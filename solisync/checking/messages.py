"""The messages between the service and processes that read replays: frames of MessagePack on pipes.

The pipes are the standard input and output of these processes.
"""

import zlib
from collections.abc import Iterator
from struct import Struct as Layout

import msgspec

from ..klondike import Proved, Verdict, make_timeline

FRAME_MAX = 16 * 2**20
READY = b""  # the first frame that a checker sends

_LENGTH = Layout(">I")


class Job(msgspec.Struct, frozen=True):
    """A replay to check, literally or with a search for undos."""

    search: bool
    body: bytes


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the job of this kind. A process never has more than one job of a kind."""

    search: bool
    verdict: Verdict
    engine: int
    timeline_digest: bytes | None
    """SHA-256 of the compressed timeline."""
    proved: Proved | None = None
    """What the moves prove, if the replay is refuted or undecided."""
    cpu_seconds: float


class Playback(msgspec.Struct, frozen=True):
    """A request for a timeline: a replay, and the verdict on it; None for what its moves prove without a verdict."""

    body: bytes
    verdict: Verdict | None


class PlayedBack(msgspec.Struct, frozen=True):
    """The timeline of a Playback, compressed by zlib, or None if it is too long or there is a `problem`.

    `proved` is set only without a verdict, if the replay is readable.
    """

    timeline: bytes | None
    problem: str | None = None
    proved: Proved | None = None


class Frames:
    """Splits a stream of bytes into frames, each of which is a length in four bytes and a payload."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def is_empty(self) -> bool:
        """Whether no incomplete frame is buffered."""
        return not self._buffer

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the payloads that this data completes; raise ValueError for a payload that is too long."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > FRAME_MAX:
                raise ValueError("a frame is too long")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield payload


def compressed_timeline(body: bytes, verdict: Verdict) -> bytes | None:
    """Return the timeline of a replay, compressed by zlib; None and errors are those of `make_timeline`."""
    timeline = make_timeline(body, verdict)
    return None if timeline is None else zlib.compress(timeline, 9)


def frame(payload: bytes) -> bytes:
    """A payload after its length."""
    return _LENGTH.pack(len(payload)) + payload
