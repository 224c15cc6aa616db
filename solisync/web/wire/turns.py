"""Shares the reactor between a few connections with much work, or many that end at once, and all others."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IDelayedCall

SLICE_SECONDS = 0.002


class Busy(Protocol):
    """A connection that has unparsed requests, or chunks of a body, in its buffer."""

    paused: bool

    def parse_on(self) -> None:
        """Parse some of it."""


class Turns:
    """Lets connections that have sent many requests or chunks continue in rotation, one in each turn of the reactor.

    However many they are, they delay the other connections by what one of them costs in a turn.
    """

    def __init__(self, *, reactor: ReactorBase) -> None:
        self._reactor = reactor
        self._waiting: dict[Busy, None] = {}  # a queue from which connections that are lost can be removed
        self._next: IDelayedCall | None = None

    def add(self, connection: Busy) -> None:
        """Pause a connection until it is its turn, once."""
        connection.paused = True
        self._waiting[connection] = None
        if self._next is None:
            self._next = self._reactor.callLater(0, self._go_on)

    def remove(self, connection: Busy) -> None:
        """Forget a connection, if it waits."""
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
    """Makes calls at once, but for SLICE_SECONDS in each turn of the reactor: those beyond wait for the next turns."""

    def __init__(self, *, reactor: ReactorBase) -> None:
        self._reactor = reactor
        self._waiting: deque[Callable[[], object]] = deque()
        self._until = 0.0
        self._next: IDelayedCall | None = None

    def run(self, call: Callable[[], object]) -> None:
        """Make this call now, or after those that wait."""
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
            self._begin()  # first, so that a call that fails keeps none of the others waiting
        while self._waiting and self._reactor.seconds() < self._until:
            self._waiting.popleft()()
