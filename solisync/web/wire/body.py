"""The body of a request, as it arrives."""

from contextlib import AbstractContextManager, nullcontext
from io import BytesIO

from ...errors import Refused

PIECE_BYTES = 65_536  # a body that grew as a whole, beside others, would leave holes as large as itself in the heap


class Body:
    """Counts the bytes of a body, and keeps them in pieces until they are dropped.

    `parsing` charges the sender of a large body for the time that it takes to parse.
    """

    parsing: AbstractContextManager[None] = nullcontext()
    received = 0  # bytes, kept or not
    unwanted: Refused | None = None  # why the bytes are not kept
    _pieces: tuple[bytes, ...] = ()  # before what is in `_last`
    _last: BytesIO | None = None

    def add(self, data: bytes) -> None:
        """Count some more bytes, and keep them if the body is kept."""
        self.received += len(data)
        if self.unwanted is None:
            if self._last is None:
                self._last = BytesIO()
            self._last.write(data)
            if self._last.tell() >= PIECE_BYTES:
                self._pieces = (*self._pieces, self._last.getvalue())
                self._last = None

    def clear(self) -> None:
        """Forget what has arrived."""
        self._pieces, self._last = (), None

    def drop(self, reason: Refused) -> None:
        """Forget what has arrived, and keep nothing of the rest; `reason` is what `read` raises."""
        self.clear()
        self.unwanted = reason

    def read(self) -> bytes:
        """The whole body; raises the reason if it was not kept."""
        if self.unwanted is not None:
            raise self.unwanted
        return b"".join(self._pieces if self._last is None else (*self._pieces, self._last.getvalue()))
