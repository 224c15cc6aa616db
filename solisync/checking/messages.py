"""What the service and a checker process tell each other: frames of MessagePack on the standard input and output."""

from collections.abc import Iterator
from struct import Struct as Layout

import msgspec

from ..klondike import Verdict

FRAME_MAX = 16 * 2**20
READY = b""  # the first frame that a checker sends

_LENGTH = Layout(">I")


class Job(msgspec.Struct, frozen=True):
    """A replay to check: literally, or with a search for undos."""

    search: bool
    body: bytes


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the job of this kind. There is never more than one of a kind."""

    search: bool
    verdict: Verdict
    engine: int
    timeline: bytes | None
    """Compressed by zlib."""
    cpu_seconds: float


class Frames:
    """Takes a stream of bytes apart into frames, each a length of four bytes and a payload."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def is_empty(self) -> bool:
        """Whether no part of a frame is left over."""
        return not self._buffer

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The payloads that are complete with this data; raises ValueError for one that is too long."""
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


def frame(payload: bytes) -> bytes:
    """A payload with its length before it."""
    return _LENGTH.pack(len(payload)) + payload
