"""Serialises the writes of each player before they borrow a database connection.

Each write locks the player's row. Otherwise requests of one player would borrow every connection of the pool and wait
for the row, while requests of other players wait for a connection.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred

from ..errors import TooMany

WAITING = 100  # requests of one player that may wait

T = TypeVar("T")


class OneAtATime:
    """Runs work for each key in the order of asking, at most one piece at a time; calls `on_refusal` for too much."""

    name = "writes"

    def __init__(self, *, reactor: ReactorBase, on_refusal: Callable[[], None] = lambda: None) -> None:
        self._reactor = reactor
        self._on_refusal = on_refusal
        self._waiting: dict[str, deque[Deferred[None]]] = {}  # for each key that is busy

    async def run(self, key: str, work: Callable[..., Awaitable[T]], **arguments: Any) -> T:
        """Run `work(**arguments)` when no other work of this key runs; raises TooMany when too much of it waits."""
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = deque()
        elif len(waiting) < WAITING:
            turn: Deferred[None] = Deferred(waiting.remove)
            waiting.append(turn)
            await turn
        else:
            self._on_refusal()
            raise TooMany(1)
        try:
            return await work(**arguments)
        finally:
            if self._waiting[key]:
                # not at once: a hundred that fail without waiting for anything would be so many calls deep
                self._reactor.callLater(0, self._go_on, key)
            else:
                del self._waiting[key]

    def _go_on(self, key: str) -> None:
        if self._waiting[key]:
            self._waiting[key].popleft().callback(None)
        else:  # all that waited have been cancelled
            del self._waiting[key]
