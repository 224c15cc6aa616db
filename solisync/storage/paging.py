"""Long lists for commands, page by page; each page begins after the last row of the one before.

Neither the server nor the command keeps more than a page of a list. No transaction stays open while an operator reads
the output.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from ..rules.queries import ListPosition

PAGE = 1_000

FIRST_TIME = datetime(1, 1, 2, tzinfo=UTC)  # it has a day before it in every time zone
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
LAST_NUMBER = 2**63 - 1  # greater than the number of any row
END = ListPosition(datetime(9999, 12, 30, tzinfo=UTC), LAST_ID)  # it has a day after it in every time zone

T = TypeVar("T")


class Received(Protocol):
    """A row of a list that is ordered by the time of receipt."""

    @property
    def id(self) -> str: ...

    @property
    def received_at(self) -> datetime: ...


async def pages(read: Callable[[T | None], Awaitable[list[T]]], size: int) -> AsyncIterator[list[T]]:
    """Yield each page that `read(last row of the page before)` returns; a page shorter than `size` is the last."""
    page = await read(None)
    while page:
        yield page
        if len(page) < size:
            return
        page = await read(page[-1])


def position(after: Received | None, first: datetime) -> tuple[datetime, str]:
    """The time and id after which a page begins: those of `after`, or of a moment just before `first`."""
    return (after.received_at, after.id) if after else (first - timedelta(microseconds=1), LAST_ID)
