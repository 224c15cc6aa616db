"""Which secrets are live, known without asking the database about each one that arrives."""

from collections.abc import Callable, Coroutine, Hashable, Iterable
from typing import Any, Generic, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.task import deferLater

from ...process.shielded import Shared, shielded

LOADINGS_APART = 0.02  # seconds

T = TypeVar("T", bound=Hashable)


class LiveSecrets(Generic[T]):
    """The secrets that have neither ended nor expired, as of the latest loading by `load`, which returns digests.

    A secret that is not among them waits for a loading that begins later. All such secrets share that loading, so none
    waits for another, and the database is asked once in LOADINGS_APART, however many arrive. About a secret that is
    among them the database decides.
    """

    def __init__(self, load: Callable[[], Coroutine[Any, Any, Iterable[T]]], *, reactor: ReactorBase) -> None:
        self._load = load
        self._reactor = reactor
        self._live: set[T] = set()
        self._began = float("-inf")
        self._latest: Shared[None] | None = None
        self._coming: Shared[None] | None = None

    async def knows(self, secret: T) -> bool:
        """Whether this secret is live, as far as is known; raises what a loading raises."""
        if secret not in self._live:
            if self._coming is None:
                self._coming = Shared(self._load_after(self._latest))
            await self._coming.outcome()
        return secret in self._live

    def forget(self, secret: T) -> None:
        """Know this secret no more, until the next loading."""
        self._live.discard(secret)

    async def _load_after(self, former: Shared[None] | None) -> None:
        if former is not None:
            await shielded(former.ended)
        await deferLater(self._reactor, max(self._began + LOADINGS_APART - self._reactor.seconds(), 0))
        self._began = self._reactor.seconds()
        self._latest, self._coming = self._coming, None
        self._live = set(await self._load())
