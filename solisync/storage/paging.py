"""Long lists for commands, a page at a time, each of which begins after the last row of the one before.

However long the list is, neither the server nor the command keeps much of it, and no transaction stays open for as long
as somebody reads the output.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from ..rules.queries import ListPosition

PAGE = 1_000

FIRST_TIME = datetime(1, 1, 2, tzinfo=UTC)  # a day that has one before it in every time zone
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
LAST_NUMBER = 2**63 - 1  # no row of a table that numbers its rows has it
END = ListPosition(datetime(9999, 12, 30, tzinfo=UTC), LAST_ID)  # likewise, with a day after it

T = TypeVar("T")


class Received(Protocol):
    """A row of a list in the order in which the service received them."""

    @property
    def id(self) -> str: ...

    @property
    def received_at(self) -> datetime: ...


async def pages(read: Callable[[T | None], Awaitable[list[T]]], size: int) -> AsyncIterator[list[T]]:
    """Yield page after page, each by `read(last row of the page before)`; a page shorter than `size` is the last."""
    page = await read(None)
    while page:
        yield page
        if len(page) < size:
            return
        page = await read(page[-1])


def position(after: Received | None, first: datetime) -> tuple[datetime, str]:
    """The time and id after which a page begins: those of `after`, or else just before `first`."""
    return (after.received_at, after.id) if after else (first - timedelta(microseconds=1), LAST_ID)
