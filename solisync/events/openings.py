"""A limit on how often a player opens streams, counted in the memory of the process."""

from collections import deque
from collections.abc import Callable
from math import ceil

from twisted.internet.base import ReactorBase

from ..errors import TooMany

MOST, SECONDS = 60, 60.0


class Openings:
    """Counts the streams that each player opens: at most MOST in any SECONDS."""

    name = "streams"

    def __init__(self, *, reactor: ReactorBase, on_refusal: Callable[[], None]) -> None:
        self._reactor = reactor
        self._on_refusal = on_refusal
        self._times: dict[str, deque[float]] = {}  # by player, in the order of their latest openings

    def count(self, player: str) -> None:
        """Count an opening; raises TooMany without counting it."""
        now = self._reactor.seconds()
        self._forget_before(now - SECONDS)
        times = self._times.pop(player, None) or deque()
        self._times[player] = times
        while times and times[0] <= now - SECONDS:
            times.popleft()
        if len(times) >= MOST:
            self._on_refusal()
            raise TooMany(ceil(times[0] + SECONDS - now))
        times.append(now)

    def _forget_before(self, time: float) -> None:
        """Forget players who have opened none since then, a few at a time."""
        for _ in range(2):
            player = next(iter(self._times), None)
            if player is None or (self._times[player] and self._times[player][-1] > time):
                return
            del self._times[player]
