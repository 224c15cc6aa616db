"""A cache for the public lists, which may be a second old (docs/protocol.md "The leaderboard" and "Replays")."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError

from ..errors import DatabaseError
from ..process.tasks import Shared, Task

T = TypeVar("T")

SECONDS = 1.0


class CoalescingCache(Generic[T]):
    """Caches the value of `load` for `seconds` after its loading began; callers share one loading.

    A process that changes the value calls `invalidate`; other processes see the change within `seconds`. The cache
    keeps one value for each variant, which must never come from a client.
    """

    seconds = SECONDS

    def __init__(self, load: Callable[..., Task[T]], *, reactor: ReactorBase, seconds: float | None = None) -> None:
        if seconds is not None:
            self.seconds = seconds
        self._load = load
        self._reactor = reactor
        self._latest: dict[tuple[bool, ...], Shared[T]] = {}

    async def get(self, *variant: bool) -> T:
        """Return the value of `load(*variant)`, loaded again if it has expired; raises the errors of `load`."""
        now = self._reactor.seconds()
        latest = self._latest.get(variant)
        # `began` is in the future if the clock was set back
        if latest is None or latest.failed or not latest.began <= now < latest.began + self.seconds:
            latest = self._latest[variant] = Shared(self._load(*variant), began=now)
        return await latest.outcome()

    def invalidate(self) -> None:
        """Forget every value, because a commit of this process has changed it.

        A loading that has already begun still ends for its callers, but its value isn't kept.
        """
        self._latest.clear()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Forget every value if the work in this block fails, because the outcome of its commit may be unknown."""
        try:
            yield
        except (DatabaseError, CancelledError):
            self.invalidate()
            raise
