"""A budget for large request bodies and large progress, whose parsing or merging blocks the reactor for all clients.

Each client has a token bucket in the memory of each process. A limit shared by all processes (rate_limit.py) would cost
a statement, and the budget protects only the time of this process. The price of a body is its size, which clients can
predict; a body crafted to be parsed slowly costs more, in proportion to the time. A push is merged with the stored
progress, so its price is the size of the larger of the two.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from time import thread_time

from ..errors import TooMany

LARGE_BYTES = 65_536  # a body of up to this size is free
BURST_BYTES = 20 * 2**20  # the full bucket of a client, enough for 20 of the largest bodies
BYTES_PER_SECOND = 2 * 2**20
REACTOR_SHARE = 0.05  # the long-term share of a client's parsing in the reactor's time, and as much again for merging
REMEMBERED = 10_000  # the number of clients whose buckets are kept; a forgotten bucket is full again


class LargeBodies:
    """Admits large bodies, or calls `on_refusal` and raises TooMany.

    `seconds` is a clock, `cpu_seconds` the processor time of this thread.
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
        self._buckets: dict[str, tuple[float, float]] = {}  # bytes left, and since when; the most recent last

    def admit(self, client: str, size: int) -> None:
        """Charge a client for a body of `size` bytes, at most BURST_BYTES, or raise TooMany without charging."""
        left = self._left(client)
        missing = size - left
        refused = missing >= 1  # less than a byte is an error of rounding, after a wait of exactly Retry-After
        self._keep(client, left if refused else left - size)
        if refused:
            self._on_refusal()
            raise TooMany(ceil(missing / BYTES_PER_SECOND))

    @contextmanager
    def parsing(self, client: str, size: int) -> Iterator[None]:
        """Charge a client for the time of a block that parses a body, less the price of the body's size."""
        began = self._cpu_seconds()
        try:
            yield
        finally:
            price = (self._cpu_seconds() - began) * BYTES_PER_SECOND / REACTOR_SHARE
            if price > size:
                self._keep(client, self._left(client) - (price - size))

    @contextmanager
    def merging(self, client: str, *, pushed: int, stored: int) -> Iterator[None]:
        """Charge a client for a block that decodes progress: an admitted body of `pushed` bytes, and `stored` bytes.

        A MiB of it takes milliseconds of the reactor's time. Raises TooMany before the block runs.
        """
        size = min(max(pushed, stored), BURST_BYTES)  # imported progress may be larger than the budget
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
        self._buckets.pop(client, None)  # so that it becomes the last one
        self._buckets[client] = left, self._seconds()
        if len(self._buckets) > REMEMBERED:
            del self._buckets[next(iter(self._buckets))]
