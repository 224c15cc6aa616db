"""A staggered race of attempts to connect, to several hosts or addresses."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred, FailureGroup, race

from ..errors import ConnectionFailed
from ..process.tasks import Task

T = TypeVar("T")


async def staggered_race(
    reactor: ReactorBase, attempts: Sequence[Callable[[], Task[T]]], head_start: float
) -> tuple[int, T]:
    """Start each attempt when the previous one fails or is `head_start` seconds old; the first success wins.

    Returns the index and the result of the winner, and cancels the others. If all fail, raises ConnectionFailed with
    every reason, or the first error of another type.
    """
    turns: list[Deferred[None]] = [Deferred() for _ in range(len(attempts) + 1)]

    def begin(number: int) -> None:
        if not turns[number].called:  # otherwise the attempt has started, or was cancelled
            turns[number].callback(None)

    async def take_turn(number: int) -> T:
        await turns[number]
        timer = reactor.callLater(head_start, begin, number + 1)
        try:
            return await attempts[number]()
        except CancelledError:
            raise
        except Exception:
            begin(number + 1)
            raise
        finally:
            if timer.active():
                timer.cancel()

    begin(0)
    try:
        return await race([Deferred.fromCoroutine(take_turn(number)) for number in range(len(attempts))])
    except FailureGroup as group:
        for failure in group.failures:
            failure.trap(ConnectionFailed)  # raises any other error, such as a cancellation
        raise ConnectionFailed("; ".join(str(failure.value) for failure in group.failures)) from None
