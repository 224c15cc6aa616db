"""A bound on the bytes that all connections of a process together keep in memory for one purpose."""

from collections.abc import Callable
from typing import Generic, TypeVar

Holder = TypeVar("Holder")


class ByteBudget(Generic[Holder]):
    """Adds up the bytes of all holders; above `most`, the holders give up in the order in which they began.

    To have the largest give up, or the latest, would let attackers push out a client that is merely slow.
    """

    def __init__(self, most: int, *, give_up: Callable[[Holder], None]) -> None:
        self.most = most
        self.used = 0
        self._give_up = give_up
        self._sizes: dict[Holder, int] = {}  # in the order in which they began

    def hold(self, holder: Holder, size: int) -> None:
        """Record that a holder now has `size` bytes. This or another holder may have to give up, and is released."""
        if not size:
            self.release(holder)  # or it would give up, and free nothing
            return
        self.used += size - self._sizes.get(holder, 0)
        self._sizes[holder] = size
        while self.used > self.most:
            longest = next(iter(self._sizes))
            self.release(longest)
            self._give_up(longest)

    def release(self, holder: Holder) -> None:
        """Record that a holder, if it is one, has no bytes any more."""
        self.used -= self._sizes.pop(holder, 0)
