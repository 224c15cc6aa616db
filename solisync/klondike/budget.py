"""How much a search may do: steps, which are the same on every machine, and whatever else its caller measures."""

from collections.abc import Callable

STEPS = 6_000_000
"""Some ten seconds' worth, and less than 200 MiB."""

_STEPS_BETWEEN_QUESTIONS = 2_000


class OutOfBudgetError(Exception):
    """The search was stopped before it was complete."""


class Budget:
    """Counts the steps of a search, and asks `keep_going` every 2,000 steps, a few milliseconds, whether it may go on.

    `keep_going` can look at a clock, or at memory; other work can be done inside of it.
    """

    def __init__(self, *, steps: int = STEPS, keep_going: Callable[[], bool] = lambda: True) -> None:
        self._left = steps
        self._question = steps - _STEPS_BETWEEN_QUESTIONS
        self._keep_going = keep_going

    def spend(self, steps: int) -> None:
        """Count some steps; raises OutOfBudgetError if there are none left, or if the search may not go on."""
        self._left -= steps
        if self._left > self._question:
            return
        self._question = self._left - _STEPS_BETWEEN_QUESTIONS
        if self._left <= 0 or not self._keep_going():
            raise OutOfBudgetError
