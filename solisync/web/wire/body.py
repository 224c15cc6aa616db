"""The body of a request as it arrives, and the chunked transfer coding (RFC 9112 §7.1) at a bounded cost."""

from contextlib import AbstractContextManager, nullcontext
from io import BytesIO

from ...errors import Refused
from .parse import MAX_HEADERS, has_bare_line_end, is_field_line, read_chunk_line

PIECE_BYTES = 65_536  # bodies that grow in one piece each would leave holes of their size in the heap
CHUNKS = 1_000
CHUNK_BYTES = 64  # the required average of CHUNKS in a row, because each chunk takes a microsecond to read
CHUNKS_PER_TURN = 200
LINE_MAX = 1_024  # bytes of a chunk's size and extensions, or of a trailer

_CRLF = b"\r\n"


class Body:
    """Counts the bytes of a body, and keeps them in pieces until they are dropped.

    `parsing` charges the time of parsing a large body to its sender.
    """

    parsing: AbstractContextManager[None] = nullcontext()
    received = 0  # bytes, kept or not
    unwanted: Refused | None = None  # why the bytes are not kept
    _pieces: tuple[bytes, ...] = ()  # before what is in `_last`
    _last: BytesIO | None = None

    def add(self, data: bytes) -> None:
        """Count more bytes, and keep them if the body is kept."""
        self.received += len(data)
        if self.unwanted is None:
            if self._last is None:
                self._last = BytesIO()
            self._last.write(data)
            if self._last.tell() >= PIECE_BYTES:
                self._pieces = (*self._pieces, self._last.getvalue())
                self._last = None

    def clear(self) -> None:
        """Forget the bytes that have arrived."""
        self._pieces, self._last = (), None

    def drop(self, reason: Refused) -> None:
        """Forget the bytes that have arrived and keep no more; `read` then raises `reason`."""
        self.clear()
        self.unwanted = reason

    def read(self) -> bytes:
        """Return the whole body; raises the reason if it was dropped."""
        if self.unwanted is not None:
            raise self.unwanted
        return b"".join(self._pieces if self._last is None else (*self._pieces, self._last.getvalue()))


class MalformedChunks(ValueError):
    """The body isn't in the chunked coding, or its chunks are too small on average."""


class Chunks:
    """Decodes the body of one request, up to CHUNKS_PER_TURN chunks in each call."""

    ended = False  # whether the body is complete
    _rest = _CRLF  # a part of a line; a chunk's line begins with the line end of the previous chunk
    _missing = 0  # bytes of the current chunk
    _last = False  # whether the last chunk, which is empty, has arrived; only trailers may follow
    _chunks = _bytes = 0  # of the current series, up to CHUNKS
    _trailers = 0

    def decode(self, data: bytes) -> tuple[bytes, bytes]:
        """Return more of the body, and the bytes that this call leaves alone; raises MalformedChunks.

        The latter follow the body if it has `ended`, else they must be decoded in another turn of the reactor.
        """
        data, self._rest = self._rest + data, b""
        pieces, at, lines = [], 0, 0
        while at < len(data) and not self.ended and lines < CHUNKS_PER_TURN:
            if self._missing:
                piece = data[at : at + self._missing]
                pieces.append(piece)
                self._missing -= len(piece)
                at += len(piece)
                continue
            start = at if self._last else at + len(_CRLF)
            end = data.find(_CRLF, start, start + LINE_MAX)
            if end < 0:
                self._check_beginning(data[at:start], data[start:])
                self._rest, at = data[at:], len(data)
                break
            if not self._last:
                self._read_chunk_line(data, at, end)
            elif end > at:
                self._read_trailer(data, at, end)
            else:
                self.ended = True
            at = end + len(_CRLF)
            lines += 1
        return b"".join(pieces), data[at:]

    def _read_chunk_line(self, data: bytes, at: int, end: int) -> None:
        line = read_chunk_line(data, at, end)
        if line is None:
            raise MalformedChunks
        self._missing = int(line[1], 16)
        self._last = not self._missing
        if self._missing:
            self._count(self._missing)

    def _read_trailer(self, data: bytes, at: int, end: int) -> None:
        self._trailers += 1
        if not is_field_line(data, at, end) or self._trailers > MAX_HEADERS:
            raise MalformedChunks

    def _count(self, size: int) -> None:
        if self._chunks == CHUNKS:
            if self._bytes < CHUNKS * CHUNK_BYTES:
                raise MalformedChunks
            self._chunks = self._bytes = 0
        self._chunks += 1
        self._bytes += size

    def _check_beginning(self, line_end: bytes, line: bytes) -> None:
        """Raise MalformedChunks unless this can be the beginning of a line."""
        if not _CRLF.startswith(line_end) or has_bare_line_end(line) or len(line) > LINE_MAX:
            raise MalformedChunks
