"""A list for everybody that may be a second old (contract §8), but never older than what this process has changed."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from twisted.internet.base import ReactorBase

T = TypeVar("T")

SECONDS = 1.0


class Remembered(Generic[T]):
    """The result of `load`, for at most a second from the moment its loading began."""

    def __init__(self, load: Callable[[], Awaitable[T]], *, reactor: ReactorBase) -> None:
        self._load = load
        self._reactor = reactor
        self._value: T | None = None
        self._until = 0.0
        self._changes = 0

    async def get(self) -> T:
        """The value, loaded anew when it is too old."""
        began = self._reactor.seconds()
        if self._value is not None and began < self._until <= began + SECONDS:  # the clock may have been set back
            return self._value
        changes = self._changes
        value = await self._load()
        if changes == self._changes:  # else it may be from before a change of ours
            self._value, self._until = value, began + SECONDS
        return value

    def forget(self) -> None:
        """Something that this process committed has changed the value.

        Call it in a `finally` inside of the work that is given to the database: that runs to its end, while a handler
        ends where its client hangs up; and when the outcome is unknown, the value may have changed as well.
        """
        self._value = None
        self._changes += 1
