"""The open connections of a process: the bound on unread bytes, and how the connections end when the service stops."""

from contextlib import suppress
from typing import Protocol

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.logger import Logger

GRACE_SECONDS = 1.0
UNREAD_MAX = 16 * 2**20  # bytes of replies that wait in memory for clients that do not read, in one process


class Sender(Protocol):
    """The sending half of a connection."""

    def discard_unsent(self) -> None:
        """Drop the unsent rest of a reply."""


class Connection(Sender, Protocol):
    """What `Connections` asks of a connection."""

    def drain(self) -> None:
        """Close once the current request, if any, is answered."""

    def close_if_idle(self) -> None:
        """Close unless a request has begun to arrive or is being handled."""

    def cut(self) -> None:
        """Close at once, whatever is still unsent."""


class Connections:
    """The open connections of a site, the budget of unread bytes that they share, and their draining."""

    _log = Logger()

    def __init__(self, *, reactor: ReactorBase) -> None:
        self._reactor = reactor
        self.open: set[Connection] = set()
        self._unread: dict[Sender, int] = {}  # in the order in which they stalled
        self._unread_bytes = 0
        self._drained: Deferred[None] | None = None
        self.draining = False

    def register(self, connection: Connection) -> None:
        """Add a connection that has just been made."""
        self.open.add(connection)

    def unregister(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        self.clear_unread(connection)
        self.open.discard(connection)
        if not self.open and self._drained is not None:
            drained, self._drained = self._drained, None
            drained.callback(None)

    def count_unread(self, connection: Sender, size: int) -> None:
        """Record that a client has stopped reading while `size` bytes of its reply wait in memory.

        Above UNREAD_MAX bytes in all, the replies of those connections are discarded that have stalled for longest.
        To discard the largest, or the latest, would let clients that never read push out one that is merely slow.
        """
        self._unread_bytes += size - self._unread.get(connection, 0)
        self._unread[connection] = size
        while self._unread_bytes > UNREAD_MAX:
            longest = next(iter(self._unread))
            self.clear_unread(longest)
            longest.discard_unsent()

    def clear_unread(self, connection: Sender) -> None:
        """Record that the client has read on, or that the connection has ended."""
        self._unread_bytes -= self._unread.pop(connection, 0)

    def announce_end(self) -> None:
        """Send `Connection: close` with every reply from now on."""
        self.draining = True
        for connection in list(self.open):
            connection.drain()

    async def drain(self, seconds: float) -> None:
        """Wait up to `seconds` for every request to be answered and its connection closed, then cut the others.

        Idle connections are closed after GRACE_SECONDS, not at once: a request may be on its way.
        """
        if not await self._ended_within(min(GRACE_SECONDS, seconds)):
            for connection in list(self.open):
                connection.close_if_idle()
        if not await self._ended_within(seconds - min(GRACE_SECONDS, seconds)):
            self._log.warn("cut {count} connections that did not end in time", count=len(self.open))
            for connection in list(self.open):
                connection.cut()

    async def _ended_within(self, seconds: float) -> bool:
        if self.open:
            self._drained = Deferred()
            with suppress(TimeoutError):
                await self._drained.addTimeout(seconds, self._reactor)
            self._drained = None
        return not self.open
