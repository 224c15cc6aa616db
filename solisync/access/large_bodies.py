"""A budget for large request bodies and large progress: to parse or merge these takes the reactor from everybody else.

A token bucket for each client, in the memory of each process: a limit that all processes share (rate_limit.py) would
cost a statement, and it is this process's time that is protected. The price of a body is its size, so that clients can
predict it; one that is made to be parsed slowly costs more, in proportion to the time. A push is merged with what is
stored, so its price is the size of the larger of both.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from time import thread_time

from ..errors import TooMany

LARGE_BYTES = 65_536  # a body of up to that many bytes is free
BURST_BYTES = 20 * 2**20  # of a client that has sent nothing large for a while: 20 of the largest bodies
BYTES_PER_SECOND = 2 * 2**20
REACTOR_SHARE = 0.05  # what parsing for one client may take of the reactor in the long run, and merging once more
REMEMBERED = 10_000  # clients whose buckets are kept; a bucket that is forgotten is full again


class LargeBodies:
    """Admits large bodies, or calls `on_refusal` and raises TooMany.

    `seconds` is a clock, `cpu_seconds` the time this thread has computed.
    """

    name = "large_bodies"

    def __init__(
        self,
        *,
        seconds: Callable[[], float],
        cpu_seconds: Callable[[], float] = thread_time,
        on_refusal: Callable[[], None] = lambda: None,
    ) -> None:
        self._seconds = seconds
        self._cpu_seconds = cpu_seconds
        self._on_refusal = on_refusal
        self._buckets: dict[str, tuple[float, float]] = {}  # bytes left, and since when; the latest used last

    def admit(self, client: str, size: int) -> None:
        """Charge a client for a body of `size` bytes, at most BURST_BYTES; raises TooMany, and then charges nothing."""
        left = self._left(client)
        missing = size - left
        refused = missing >= 1  # less is what rounding leaves after a wait of exactly Retry-After
        self._keep(client, left if refused else left - size)
        if refused:
            self._on_refusal()
            raise TooMany(ceil(missing / BYTES_PER_SECOND))

    @contextmanager
    def parsing(self, client: str, size: int) -> Iterator[None]:
        """Charge a client for the time of a block that parses a body, as far as its size has not paid for that."""
        began = self._cpu_seconds()
        try:
            yield
        finally:
            price = (self._cpu_seconds() - began) * BYTES_PER_SECOND / REACTOR_SHARE
            if price > size:
                self._keep(client, self._left(client) - (price - size))

    @contextmanager
    def merging(self, client: str, *, pushed: int, stored: int) -> Iterator[None]:
        """Charge a client for a block that merges a body of `pushed` bytes, which was admitted, with `stored` ones.

        Raises TooMany before the block.
        """
        size = min(max(pushed, stored), BURST_BYTES)  # an import may bring progress that is larger than the budget
        if size <= LARGE_BYTES:
            yield
            return
        missing = size - (pushed if pushed > LARGE_BYTES else 0)
        if missing:
            self.admit(client, missing)
        with self.parsing(client, size):
            yield

    def _left(self, client: str) -> float:
        now = self._seconds()
        left, since = self._buckets.get(client, (BURST_BYTES, now))
        return min(BURST_BYTES, left + max(0.0, now - since) * BYTES_PER_SECOND)

    def _keep(self, client: str, left: float) -> None:
        self._buckets.pop(client, None)  # to be the last
        self._buckets[client] = left, self._seconds()
        if len(self._buckets) > REMEMBERED:
            del self._buckets[next(iter(self._buckets))]
