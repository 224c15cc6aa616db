"""An upper bound on the time that handlers take."""

from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

T = TypeVar("T")


class TimeLimit:
    """Lets Deferreds fail with TimeoutError in time, and cancels the work behind them.

    Fast path: one timer, due when the first deadline is, replaces `Deferred.addTimeout`, 20,000 instructions, see
    docs/performance.md.
    """

    def __init__(self, *, reactor: ReactorBase) -> None:
        self._reactor = reactor
        self._running: dict[Deferred[Any], tuple[Deferred[Any], float]] = {}
        self._timer: IDelayedCall | None = None
        self._expired: Deferred[Any] | None = None  # the work that is being cancelled

    def bound(self, work: Deferred[T], seconds: float, *, on_late_failure: Callable[[Failure], object]) -> Deferred[T]:
        """The outcome of `work`, or a TimeoutError after `seconds`, even if `work` can't be cancelled.

        Cancelling it cancels `work`. A failure that comes after the outcome goes to `on_late_failure`.
        """
        outcome: Deferred[T] = Deferred(lambda _: work.cancel())
        deadline = self._reactor.seconds() + seconds
        self._running[work] = outcome, deadline
        if self._timer is None or self._timer.getTime() > deadline:
            self._wait_until(deadline)

        def deliver(result: T | Failure) -> None:
            self._running.pop(work, None)
            if not outcome.called:
                if self._expired is work and isinstance(result, Failure) and result.check(CancelledError):
                    result = Failure(TimeoutError())
                outcome.callback(result)
            elif isinstance(result, Failure):
                on_late_failure(result)

        work.addBoth(deliver)
        return outcome

    def _wait_until(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._reactor.callLater(max(0.0, deadline - self._reactor.seconds()), self._expire)

    def _expire(self) -> None:
        now, self._timer = self._reactor.seconds(), None
        for work, (outcome, deadline) in list(self._running.items()):
            if deadline > now:
                continue
            del self._running[work]
            if not outcome.called:
                self._expired = work
                work.cancel()
                self._expired = None
                if not outcome.called:
                    outcome.errback(TimeoutError())
        if self._running and self._timer is None:
            self._wait_until(min(deadline for _, deadline in self._running.values()))
