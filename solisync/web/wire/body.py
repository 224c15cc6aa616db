"""The body of a request as it arrives, and the chunked transfer coding (RFC 9112 §7.1) at a bounded cost."""

from collections.abc import Callable
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
    """Decodes the body of one request. `on_data` is called once for all chunks that arrive together.

    After CHUNKS_PER_TURN chunks, `put_off` is called with the bytes to decode in another turn of the reactor. After the
    last chunk, `on_end` is called with the bytes that follow the body.
    """

    def __init__(
        self,
        on_data: Callable[[bytes], None],
        on_end: Callable[[bytes], None],
        put_off: Callable[[bytes], None],
    ) -> None:
        self._on_data = on_data
        self._on_end = on_end
        self._put_off = put_off
        self._rest = _CRLF  # a part of a line; a chunk's line begins with the line end of the previous chunk
        self._missing = 0  # bytes of the current chunk
        self._last = False  # whether the last chunk, which is empty, has arrived; only trailers may follow
        self._chunks = self._bytes = 0  # of the current series, up to CHUNKS
        self._trailers = 0

    def dataReceived(self, data: bytes) -> None:
        """Decode more bytes; raises MalformedChunks."""
        data, self._rest = self._rest + data, b""
        pieces, at, ended, lines = [], 0, False, 0
        while at < len(data) and not ended and lines < CHUNKS_PER_TURN:
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
                self._rest = data[at:]
                break
            if not self._last:
                self._read_chunk_line(data, at, end)
            elif end > at:
                self._read_trailer(data, at, end)
            else:
                ended = True
            at = end + len(_CRLF)
            lines += 1
        if pieces:
            self._on_data(b"".join(pieces))
        if ended:
            self._on_end(data[at:])
        elif lines == CHUNKS_PER_TURN:
            self._put_off(data[at:])

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
