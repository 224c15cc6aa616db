"""How much searches may do: steps, which are the same on every machine, and whatever else their caller measures."""

from collections.abc import Callable

STEPS = 6_000_000
"""Some ten seconds' worth, and less than 200 MiB."""

_STEPS_BETWEEN_QUESTIONS = 2_000


class OutOfBudgetError(Exception):
    """A search was stopped before it was complete."""


class Budget:
    """Counts the steps of searches, and asks `used` every 2,000 steps, a few milliseconds, which share is used up.

    `used` can look at a clock, or at memory, and gives 1 or more when all of it is used up; other work can be done
    inside of it. A search may use what is left up to `share`, which its caller sets, of the steps as of the rest.
    """

    def __init__(self, *, steps: int = STEPS, used: Callable[[], float] = lambda: 0.0) -> None:
        self.share = 1.0
        self._steps = steps
        self._spent = 0
        self._question = _STEPS_BETWEEN_QUESTIONS
        self._used = used

    def spend(self, steps: int) -> None:
        """Count some steps; raises OutOfBudgetError if the share is used up."""
        self._spent += steps
        if self._spent < self._question:
            return
        self._question = self._spent + _STEPS_BETWEEN_QUESTIONS
        if self._spent >= self._steps * self.share or self._used() >= self.share:
            raise OutOfBudgetError
