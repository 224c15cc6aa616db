"""Work per turn of the reactor: a share of the requests of busy connections, and one write of all replies."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet import tcp
from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from .transport import SocketTransport

if TYPE_CHECKING:
    from .connection import HttpConnection

SLICE_SECONDS = 0.002

_log = Logger()


class Rotation:
    """Lets connections with many requests or chunks continue in rotation, one in each turn of the reactor.

    However many wait, they delay other connections only by the work of one in each turn.
    """

    def __init__(self, *, reactor: ReactorBase) -> None:
        self._reactor = reactor
        self._waiting: dict[HttpConnection, None] = {}  # a queue from which lost connections can be removed
        self._next: IDelayedCall | None = None

    def add(self, connection: "HttpConnection") -> None:
        """Pause a connection until its next turn."""
        connection.paused = True
        self._waiting[connection] = None
        if self._next is None:
            self._next = self._reactor.callLater(0, self._go_on)

    def remove(self, connection: "HttpConnection") -> None:
        """Remove a connection, if it waits."""
        self._waiting.pop(connection, None)
        if not self._waiting and self._next is not None:
            self._next.cancel()
            self._next = None

    def _go_on(self) -> None:
        connection = next(iter(self._waiting))
        del self._waiting[connection]
        self._next = self._reactor.callLater(0, self._go_on) if self._waiting else None
        connection.parse_on()


class Slices:
    """Makes calls immediately, up to SLICE_SECONDS in each turn of the reactor; further calls wait for later turns."""

    def __init__(self, *, reactor: ReactorBase) -> None:
        self._reactor = reactor
        self._waiting: deque[Callable[[], object]] = deque()
        self._until = 0.0
        self._next: IDelayedCall | None = None

    def run(self, call: Callable[[], object]) -> None:
        """Make this call now, or after the waiting calls."""
        if self._next is None:
            self._begin()
        if self._waiting or self._reactor.seconds() >= self._until:
            self._waiting.append(call)
        else:
            call()

    def _begin(self) -> None:
        self._until = self._reactor.seconds() + SLICE_SECONDS
        self._next = self._reactor.callLater(0, self._go_on)

    def _go_on(self) -> None:
        self._next = None
        if self._waiting:
            self._begin()  # first, so that a failing call doesn't block the others
        while self._waiting and self._reactor.seconds() < self._until:
            self._waiting.popleft()()


class EndOfTurn:
    """Sends the data that connections have written in a turn at its end; the reactor watches only full connections.

    Fast path: replaces two calls of the kernel and an event of the reactor for each reply, 15,000 instructions, see
    docs/performance.md. Only for TCP and unix sockets: TLS connections send as Twisted does.
    """

    def __init__(self, *, reactor: ReactorBase) -> None:
        self._reactor: Any = reactor
        self._written: dict[tcp.Server, None] = {}
        self._next: IDelayedCall | None = None

    def adopt(self, transport: SocketTransport) -> None:
        """Send the data of this transport at the end of each turn, until `release`."""
        if isinstance(transport, tcp.Server) and hasattr(self._reactor, "_disconnectSelectable"):
            vars(transport)["startWriting"] = partial(self._add, transport)

    def release(self, transport: SocketTransport) -> None:
        """Forget a transport whose connection is lost."""
        if isinstance(transport, tcp.Server):
            vars(transport).pop("startWriting", None)
            self._written.pop(transport, None)

    def _add(self, transport: tcp.Server) -> None:
        self._written[transport] = None
        if self._next is None:
            self._next = self._reactor.callLater(0, self._send)

    def _send(self) -> None:
        written, self._written = self._written, {}
        self._next = None
        for transport in written:
            if transport.fileno() < 0:
                continue  # sending to another connection has cut this one
            try:
                why = transport.doWrite()
            except Exception as error:
                _log.failure("could not send a reply")
                why = error
            if why:
                self._reactor._disconnectSelectable(transport, why, False)
            elif transport.dataBuffer:
                self._reactor.addWriter(transport)
