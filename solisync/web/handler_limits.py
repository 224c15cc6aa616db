"""Limits on handlers: on their time, on the requests of one player that run or wait, and on expensive queries."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred, DeferredLock, TimeoutError
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from ..errors import TooMany, Unavailable
from ..process.tasks import Task, shielded

WAITING = 100  # requests of one player that may wait
EXPENSIVE_WAITING = 2  # expensive queries that may wait; even the last is answered within the time limit of a request
RETRY_SECONDS = 2

P = ParamSpec("P")
T = TypeVar("T")


class TimeLimit:
    """Fails Deferreds with TimeoutError at their deadline, and cancels the work behind them.

    Fast path: one timer, set to the earliest deadline, replaces `Deferred.addTimeout`, 20,000 instructions, see
    docs/performance.md.
    """

    def __init__(self, *, reactor: ReactorBase) -> None:
        self._reactor = reactor
        self._running: dict[Deferred[Any], tuple[Deferred[Any], float]] = {}
        self._timer: IDelayedCall | None = None
        self._expired: Deferred[Any] | None = None  # the work that is being cancelled

    def bound(self, work: Deferred[T], seconds: float, *, on_late: Callable[[T | Failure], object]) -> Deferred[T]:
        """Return the outcome of `work`, or a TimeoutError after `seconds`, even if `work` can't be cancelled.

        Cancelling the outcome cancels `work`. A result or failure of `work` after the outcome goes to `on_late`.
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
            else:
                on_late(result)

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


class OneAtATime:
    """Runs work one at a time for each key, in the order of the calls; calls `on_refusal` if too much work waits.

    Each write locks its player's row, so the writes of a player wait here before they borrow a database connection.
    Otherwise one player's requests could borrow all connections of the pool and wait for the row, while requests of
    other players wait for a connection.
    """

    name = "writes"

    def __init__(self, *, reactor: ReactorBase, on_refusal: Callable[[], None] = lambda: None) -> None:
        self._reactor = reactor
        self._on_refusal = on_refusal
        self._waiting: dict[str, deque[Deferred[None]]] = {}  # for each key that is busy

    async def run(self, key: str, work: Callable[..., Awaitable[T]], **arguments: Any) -> T:
        """Run `work(**arguments)` when no other work of this key runs; raises TooMany if WAITING calls wait."""
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
                # in the next turn, because a hundred calls that fail immediately would nest a hundred deep
                self._reactor.callLater(0, self._go_on, key)
            else:
                del self._waiting[key]

    def _go_on(self, key: str) -> None:
        if self._waiting[key]:
            self._waiting[key].popleft().callback(None)
        else:  # all that waited have been cancelled
            del self._waiting[key]


class ExpensiveQueries:
    """Runs one query at a time in this process, so that players' requests don't wait for several."""

    def __init__(self) -> None:
        self._lock = DeferredLock()

    async def run(self, query: Callable[P, Task[T]], *arguments: P.args, **options: P.kwargs) -> T:
        """Return the result of `query`; raise Unavailable while EXPENSIVE_WAITING others wait.

        A query keeps its place until it ends, even if its client leaves.
        """
        if len(self._lock.waiting) >= EXPENSIVE_WAITING:
            raise Unavailable(RETRY_SECONDS)
        return await shielded(self._lock.run(lambda: Deferred.fromCoroutine(query(*arguments, **options))))
