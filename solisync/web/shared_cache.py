"""A cache for the public lists, which may be a second old (docs/protocol.md "The leaderboard" and "Replays")."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError

from ..errors import DatabaseError
from ..process.shielded import Shared

T = TypeVar("T")

SECONDS = 1.0


class CoalescingCache(Generic[T]):
    """The value of `load`, kept for `seconds` from the moment when its loading began; callers share one loading.

    Never older than what this process has changed, see `invalidate`. Other processes notice a change within `seconds`.
    One value is kept for each variant that is ever asked for: they are the program's own, never a client's text.
    """

    seconds = SECONDS

    def __init__(
        self, load: Callable[..., Coroutine[Any, Any, T]], *, reactor: ReactorBase, seconds: float | None = None
    ) -> None:
        if seconds is not None:
            self.seconds = seconds
        self._load = load
        self._reactor = reactor
        self._latest: dict[tuple[bool, ...], Shared[T]] = {}

    async def get(self, *variant: bool) -> T:
        """The value of `load(*variant)`, loaded anew when it has expired; raises what `load` raises."""
        now = self._reactor.seconds()
        latest = self._latest.get(variant)
        # the clock may have been set back
        if latest is None or latest.failed or not latest.began <= now < latest.began + self.seconds:
            latest = self._latest[variant] = Shared(self._load(*variant), began=now)
        return await latest.outcome()

    def invalidate(self) -> None:
        """Forget every value: a commit of this process has changed it.

        A loading that has begun before is finished for its callers, and not kept.
        """
        self._latest.clear()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Forget every value if the work in this block fails: its commit may have an unknown outcome."""
        try:
            yield
        except (DatabaseError, CancelledError):
            self.invalidate()
            raise
