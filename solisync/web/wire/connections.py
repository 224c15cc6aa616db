"""The open connections of a process: limits on their memory, and their end when the service stops."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.logger import Logger

from .reply import OUT_OF_MEMORY
from .turns import EndOfTurn, Rotation, Slices

if TYPE_CHECKING:
    from .connection import HttpConnection
    from .sending import Sender

GRACE_SECONDS = 1.0
UNREAD_MAX = 16 * 2**20  # bytes per process of replies that wait for clients that don't read
UNFINISHED_MAX = 64 * 2**20  # bytes per process of request bodies that haven't arrived completely

Holder = TypeVar("Holder")


class ByteBudget(Generic[Holder]):
    """Adds up the bytes of all holders; above `most`, holders give up, oldest first.

    If the largest or the latest gave up, attackers could push out a client that is merely slow.
    """

    def __init__(self, most: int, *, give_up: Callable[[Holder], None]) -> None:
        self.most = most
        self.used = 0
        self._give_up = give_up
        self._sizes: dict[Holder, int] = {}  # oldest first

    def hold(self, holder: Holder, size: int) -> None:
        """Record that a holder now has `size` bytes. This holder or an older one may then have to give up."""
        if not size:
            self.release(holder)  # otherwise it could have to give up without freeing anything
            return
        self.used += size - self._sizes.get(holder, 0)
        self._sizes[holder] = size
        while self.used > self.most:
            oldest = next(iter(self._sizes))
            self.release(oldest)
            self._give_up(oldest)

    def release(self, holder: Holder) -> None:
        """Record that a holder has no bytes any more; unknown holders are ignored."""
        self.used -= self._sizes.pop(holder, 0)


class Connections:
    """The open connections of a site, their shared objects, and their draining.

    `unread` counts bytes of replies that wait for clients that have stopped reading. `unfinished` counts bytes of
    request bodies that have arrived in part. `turns` schedules connections that have pipelined requests. `stream_ends`
    cleans up streams whose connections are lost. `idle` has the connections without a request, the longest idle first.
    Above `most` connections, which leaves file descriptors for others, a new one closes the longest idle one.
    """

    _log = Logger()

    def __init__(self, *, reactor: ReactorBase, most: int) -> None:
        self._reactor = reactor
        self._most = most
        self.open: set[HttpConnection] = set()
        self.idle: dict[HttpConnection, None] = {}
        self.unread: ByteBudget[Sender] = ByteBudget(UNREAD_MAX, give_up=lambda each: each.discard_unsent())
        self.unfinished: ByteBudget[HttpConnection] = ByteBudget(
            UNFINISHED_MAX, give_up=lambda each: each.refuse(OUT_OF_MEMORY())
        )
        self.rotation = Rotation(reactor=reactor)
        self.stream_ends = Slices(reactor=reactor)
        self.end_of_turn = EndOfTurn(reactor=reactor)
        self._drained: Deferred[None] | None = None
        self.draining = False

    def register(self, connection: "HttpConnection") -> None:
        """Add a new connection."""
        self.open.add(connection)
        if len(self.open) > self._most and self.idle:
            longest = next(iter(self.idle))
            del self.idle[longest]
            longest.close_if_idle()
        self.idle[connection] = None

    def unregister(self, connection: "HttpConnection") -> None:
        """Remove a connection that has ended."""
        self.unfinished.release(connection)
        self.rotation.remove(connection)
        self.open.discard(connection)
        self.idle.pop(connection, None)
        if not self.open and self._drained is not None:
            drained, self._drained = self._drained, None
            drained.callback(None)

    def announce_end(self) -> None:
        """Send `Connection: close` with every reply from now on."""
        self.draining = True
        for connection in list(self.open):
            connection.drain()

    async def drain(self, seconds: float) -> None:
        """Wait up to `seconds` until all requests are answered and their connections closed, then cut the others.

        Idle connections are closed after GRACE_SECONDS, not immediately, because a request may be on its way.
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
