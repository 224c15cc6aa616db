"""How long a page of a list is, and where the next one begins (docs/console.md "Lists")."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from msgspec import Meta

from ...rules.queries import whole_number
from ...storage.paging import LAST_NUMBER

SHOWN = 50
MOST = 100

Size = Annotated[int, Meta(ge=1, le=MOST, description=f"rows of a page; {SHOWN} by default")]
Place = Annotated[str, Meta(description="`next` of the previous page; absent for the first page")]
OLDER = {"before": Place, "limit": Size}
Next = Annotated[str | None, Meta(description="the position of the next page; null on the last one")]

T = TypeVar("T")


def page_size(limit: list[str]) -> int:
    """How many rows a page is to have; raises BadRequest."""
    return whole_number(limit, "limit", 1, MOST, default=SHOWN)


def row_number(before: list[str]) -> int:
    """The number of the row before which a page begins; raises BadRequest."""
    return whole_number(before, "before", 1, LAST_NUMBER, default=LAST_NUMBER)


def cut(rows: list[T], size: int, place: Callable[[T], object], end: object = None) -> tuple[list[T], str | None]:
    """The first `size` rows, and the place of the last of these when there are more, else `end`."""
    following = place(rows[size - 1]) if len(rows) > size else end
    return rows[:size], None if following is None else str(following)
