"""Questions that cost the database seconds are answered one after the other, so that players don't wait for them."""

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred, DeferredLock

from ...errors import Unavailable
from ...process.shielded import shielded

WAITING = 2  # questions that may wait: the last of them is still answered in the time of a request
RETRY_SECONDS = 2

P = ParamSpec("P")
T = TypeVar("T")


class DearQuestions:
    """Asks one question at a time in this process."""

    def __init__(self) -> None:
        self._lock = DeferredLock()

    async def ask(self, question: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **options: P.kwargs) -> T:
        """The answer of `question`; raises Unavailable when WAITING others wait.

        Whoever hangs up makes no room for another: the question is asked to its end.
        """
        if len(self._lock.waiting) >= WAITING:
            raise Unavailable(RETRY_SECONDS)
        return await shielded(self._lock.run(lambda: Deferred.fromCoroutine(question(*arguments, **options))))
