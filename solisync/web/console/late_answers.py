"""Answers that are sent late, so that clients who wait for them ask less often."""

from collections.abc import Callable
from functools import partial
from itertools import islice

from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IDelayedCall

from ..wire.request import Request

LATE_SECONDS = 5.0  # at least
TICK_SECONDS = 0.1
PER_TICK = 50
HELD = 20_000  # answers that wait, the last of them for 40 s


class LateAnswers:
    """Sends answers in the order in which they came, at most PER_TICK in TICK_SECONDS.

    While its answer waits, a request costs no more than an idle connection does.
    """

    def __init__(self, *, reactor: ReactorBase, held: int = HELD) -> None:
        self._reactor = reactor
        self._held = held
        self._waiting: dict[Request, tuple[float, Callable[[], None]]] = {}
        self._tick: IDelayedCall | None = None

    def hold(self, request: Request, answer: Callable[[], None]) -> None:
        """Call `answer` later, unless the client hangs up before, or immediately when `held` others wait."""
        if len(self._waiting) >= self._held:
            answer()
            return
        self._waiting[request] = self._reactor.seconds() + LATE_SECONDS, answer
        request.on_gone = partial(self._forget, request)
        if self._tick is None:
            self._tick = self._reactor.callLater(TICK_SECONDS, self._send)

    def _forget(self, request: Request) -> None:
        self._waiting.pop(request, None)

    def _send(self) -> None:
        self._tick = None
        now = self._reactor.seconds()
        for request, (due, answer) in [*islice(self._waiting.items(), PER_TICK)]:
            if due > now:
                break
            del self._waiting[request]
            answer()
        if self._waiting:
            self._tick = self._reactor.callLater(TICK_SECONDS, self._send)
