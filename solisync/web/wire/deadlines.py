"""One timer for all deadlines of a connection."""

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IDelayedCall


class OneTimer:
    """Replaces TimeoutMixin of Twisted's; `timeoutConnection` is called at the deadline that `setTimeout` has set.

    Fast path: replaces a timer for each of a request's four deadlines, 60,000 instructions, see docs/performance.md. A
    timer that is due before the deadline is left alone, and set again when it rings.
    """

    callLater: Callable[..., Any]
    timeoutConnection: Callable[[], None]
    timeOut: float | None
    _seconds: Callable[[], float]
    _deadline: float | None = None
    _timer: IDelayedCall | None = None

    def setTimeout(self, period: float | None) -> float | None:
        """Set the deadline to be `period` from now, or none; returns the period that was set before."""
        before, self.timeOut = self.timeOut, period
        self._deadline = None if period is None else self._seconds() + period
        if self._timer is not None and self._deadline is not None and self._timer.getTime() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and period is not None:
            self._timer = self.callLater(period, self._ring)
        return before

    def _ring(self) -> None:
        self._timer = None
        if self._deadline is not None:
            left = self._deadline - self._seconds()
            if left > 0:
                self._timer = self.callLater(left, self._ring)
            else:
                self.timeoutConnection()

    def stop_timer(self) -> None:
        """Forget the deadline and the timer."""
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
