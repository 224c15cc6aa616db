"""Protection of work from the cancellation of its caller.

Klein cancels a handler when its client hangs up, and `addTimeout` cancels a Deferred that takes too long. Some work
must continue then: a thread can't be stopped, a value may be loaded for several callers, a process needs time to end.
"""

from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

T = TypeVar("T")
Task = Coroutine[Any, Any, T]

_log = Logger()


def detached(work: Task[T]) -> Deferred[T]:
    """Begin work that several callers share: it inherits no context variables, and so no caller's cancellation."""
    return Context().run(Deferred.fromCoroutine, work)


def _log_failure(failure: Failure) -> None:
    _log.failure("work failed after its caller had been cancelled", failure)


def shielded(
    work: Deferred[T],
    *,
    canceller: Callable[[Deferred[T]], None] | None = None,
    on_late_failure: Callable[[Failure], None] = _log_failure,
) -> Deferred[T]:
    """Return a Deferred with the outcome of `work` that can be cancelled, and so time out, while `work` continues.

    A cancellation calls `canceller`, which may ask `work` to end without waiting for it. A later failure has no other
    receiver than `on_late_failure`, which logs it by default. `work` keeps a result for callbacks that are added later,
    but not a failure.
    """
    outcome: Deferred[T] = Deferred(canceller)

    def deliver(result: T | Failure) -> T | None:
        if not outcome.called:
            outcome.callback(result)
        elif isinstance(result, Failure):
            on_late_failure(result)
        return None if isinstance(result, Failure) else result

    work.addBoth(deliver)
    return outcome


class Shared(Generic[T]):
    """Task whose outcome several callers await. It runs to its end even if all callers are cancelled."""

    def __init__(self, work: Task[T], *, began: float = 0.0) -> None:
        self.began = began
        self._result: T | Failure
        self.ended: Deferred[None] = detached(work).addBoth(self._keep)  # never fails

    def _keep(self, result: T | Failure) -> None:
        self._result = result

    @property
    def failed(self) -> bool:
        """Whether the work has ended with an exception."""
        return self.ended.called and isinstance(self._result, Failure)

    async def outcome(self) -> T:
        """Wait for the result and return it; raise the exception of failed work."""
        if not self.ended.called:
            await shielded(self.ended)
        if isinstance(self._result, Failure):
            self._result.raiseException()
        return self._result
