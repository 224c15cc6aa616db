"""Which codes begin a session, known without asking the database about each code that arrives."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from twisted.internet.base import ReactorBase
from twisted.internet.task import deferLater

from ...process.shielded import Shared, shielded

LOADINGS_APART = 0.1  # seconds

Code = tuple[str, bytes]  # the admin's name and the digest


class LiveCodes:
    """The codes that neither have been spent nor have expired, as of the latest loading by `load`.

    A code that is not among them waits for a loading that begins later. All such codes share that loading, so no code
    waits for another, and the database is asked once in LOADINGS_APART, however many arrive.
    """

    def __init__(self, load: Callable[[], Coroutine[Any, Any, Iterable[Code]]], *, reactor: ReactorBase) -> None:
        self._load = load
        self._reactor = reactor
        self._codes: set[Code] = set()
        self._began = float("-inf")
        self._latest: Shared[None] | None = None
        self._coming: Shared[None] | None = None

    async def take(self, name: str, digest: bytes) -> bool:
        """Whether this code is live; True once for each loading, so that a spent code costs few statements."""
        code = name, digest
        if code not in self._codes:
            await self._load_anew()
        live = code in self._codes
        self._codes.discard(code)
        return live

    async def _load_anew(self) -> None:
        """Wait for a loading that begins after this call; raises what it raises."""
        if self._coming is None:
            self._coming = Shared(self._load_after(self._latest))
        await self._coming.outcome()

    async def _load_after(self, former: Shared[None] | None) -> None:
        if former is not None:
            await shielded(former.ended)
        await deferLater(self._reactor, max(self._began + LOADINGS_APART - self._reactor.seconds(), 0))
        self._began = self._reactor.seconds()
        self._latest, self._coming = self._coming, None
        self._codes = set(await self._load())
