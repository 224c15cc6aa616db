"""Protecting work from the cancellation of its caller.

Klein cancels a handler when its client hangs up, and `addTimeout` cancels what takes too long. Some work must not end
that way: a thread can't be stopped, a value is loaded for several callers, a process ends when it ends.
"""

from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

T = TypeVar("T")

_log = Logger()


def detached(work: Coroutine[Any, Any, T]) -> Deferred[T]:
    """Begin work that is not its caller's alone: it inherits no context variables, so neither a cancellation."""
    return Context().run(Deferred.fromCoroutine, work)


def _log_failure(failure: Failure) -> None:
    _log.failure("work failed after its caller had been cancelled", failure)


def shielded(
    work: Deferred[T],
    *,
    canceller: Callable[[Deferred[T]], None] | None = None,
    on_late_failure: Callable[[Failure], None] = _log_failure,
) -> Deferred[T]:
    """A Deferred with the outcome of `work` that can be cancelled, and so time out, while `work` goes on.

    `canceller` is called at that moment, for example to ask `work` to end too without waiting until it has. A failure
    after that would reach nobody: `on_late_failure` gets it, which by default writes it to the log. A result of `work`
    stays in it for the callbacks that are added later, a failure does not.
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
    """Work whose outcome several callers await. It runs to its end, also when all of them are cancelled."""

    def __init__(self, work: Coroutine[Any, Any, T], *, began: float = 0.0) -> None:
        self.began = began
        self._result: T | Failure
        self.ended: Deferred[None] = detached(work).addBoth(self._keep)  # never fails

    def _keep(self, result: T | Failure) -> None:
        self._result = result

    @property
    def failed(self) -> bool:
        """Whether it has ended with an exception."""
        return self.ended.called and isinstance(self._result, Failure)

    async def outcome(self) -> T:
        """The result, as soon as there is one; raises the exception of work that failed."""
        if not self.ended.called:
            await shielded(self.ended)
        if isinstance(self._result, Failure):
            self._result.raiseException()
        return self._result
