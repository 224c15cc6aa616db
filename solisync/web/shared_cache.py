"""A list for everybody that may be a second old (contract §8), but never older than what this process has changed."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")

SECONDS = 1.0


class CoalescingCache(Generic[T]):
    """The result of `load`, for at most a second from the moment its loading began; a crowd shares one loading."""

    def __init__(self, load: Callable[[], Coroutine[Any, Any, T]], *, reactor: ReactorBase) -> None:
        self._load = load
        self._reactor = reactor
        self._latest: _Loading[T] | None = None

    async def get(self) -> T:
        """The value, loaded anew when it is too old; raises what `load` raises."""
        now = self._reactor.seconds()
        latest = self._latest
        # the clock may have been set back
        if latest is None or latest.failed or not latest.began <= now < latest.began + SECONDS:
            latest = self._latest = _Loading(self._load(), now)
        return await latest.outcome()

    def invalidate(self) -> None:
        """Something that this process committed has changed the value; who asks from now on gets it loaded anew.

        Call it in a `finally` inside of the work that is given to the database: that runs to its end, while a handler
        ends where its client hangs up; and when the outcome is unknown, the value may have changed as well.
        """
        self._latest = None


class _Loading(Generic[T]):
    """One loading and those who wait for it. It runs to its end, whoever hangs up meanwhile."""

    def __init__(self, work: Coroutine[Any, Any, T], began: float) -> None:
        self.began = began
        self._result: list[T | Failure] = []  # empty until there is one
        self._waiting: list[Deferred[T]] = []
        Deferred.fromCoroutine(work).addBoth(self._done)

    @property
    def failed(self) -> bool:
        return bool(self._result) and isinstance(self._result[0], Failure)

    def outcome(self) -> Deferred[T]:
        """A Deferred of the caller's own: to cancel it leaves the others waiting."""
        outcome: Deferred[T] = Deferred(self._waiting.remove)
        if self._result:
            outcome.callback(self._result[0])
        else:
            self._waiting.append(outcome)
        return outcome

    def _done(self, result: T | Failure) -> None:
        self._result.append(result)
        while self._waiting:
            self._waiting.pop(0).callback(result)
