"""Code that the resources of the console share.

It declares routes, reads parameters of queries, cuts lists into pages (docs/console.md "Lists"), and limits expensive
queries.
"""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, ParamSpec, TypeVar

from msgspec import Meta
from twisted.internet.defer import Deferred, DeferredLock

from ...access.rate_limit import ADMIN
from ...errors import BadRequest, Code, Unavailable
from ...process.shielded import shielded
from ...rules.controls import has_controls
from ...rules.queries import choice, whole_number
from ...rules.shapes import canonical_uuid
from ...storage.paging import LAST_NUMBER
from ..route import Handler, declaring

ROOT = "/api/admin"
NO_PLAYER: tuple[Code, ...] = ("player_not_found",)
NO_REPLAY: tuple[Code, ...] = ("replay_not_found",)

TEXT_MAX = 100  # code points in a search text
SHOWN = 50  # rows of a page, unless the query has a limit
MOST = 100

WAITING = 2  # expensive queries that may wait; even the last is answered within the time limit of a request
RETRY_SECONDS = 2

Size = Annotated[int, Meta(ge=1, le=MOST, description=f"rows of a page; {SHOWN} by default")]
Place = Annotated[str, Meta(description="`next` of the previous page; absent for the first page")]
OLDER = {"before": Place, "limit": Size}
Next = Annotated[str | None, Meta(description="the position of the next page; null on the last one")]

P = ParamSpec("P")
T = TypeVar("T")


def _declaring(method: str) -> Callable[..., Callable[[Handler], Handler]]:
    """Return the decorator for routes under ROOT, by default for admins who have signed in.

    Only pages of the console may send methods other than GET.
    """
    declare = declaring(method)
    usual = {
        "for_admins": True,
        "protected": True,
        "same_origin": method != "GET",
        "private": True,
        "shared": False,
        "limit": ADMIN,
    }

    def declare_here(path: str, **facts: Any) -> Callable[[Handler], Handler]:
        return declare(f"{ROOT}{path}", **{**usual, **facts})

    return declare_here


get, post, put, delete = map(_declaring, ("GET", "POST", "PUT", "DELETE"))


def one_text(values: list[str], name: str) -> str:
    """Return the search text, or "" if there is none; raises BadRequest."""
    if len(values) > 1 or len("".join(values)) > TEXT_MAX or has_controls("".join(values)):
        raise BadRequest("bad_query", f"{name} must be one text of at most {TEXT_MAX} characters")
    return "".join(values).strip()


def flag(values: list[str], name: str) -> bool:
    """Whether the parameter is `true`; raises BadRequest."""
    return choice(values, name, ("true", "false")) == "true"


def user(values: list[str], name: str) -> str | None:
    """Return the id of a player, or None if it isn't given; raises BadRequest."""
    if not values:
        return None
    user_id = canonical_uuid(values[0])
    if len(values) > 1 or user_id is None:
        raise BadRequest("bad_query", f"{name} must be an id")
    return user_id


def page_size(limit: list[str], default: int = SHOWN) -> int:
    """Return the number of rows of a page; raises BadRequest."""
    return whole_number(limit, "limit", 1, MOST, default=default)


def row_number(before: list[str]) -> int:
    """Return the number of the row before which a page begins; raises BadRequest."""
    return whole_number(before, "before", 1, LAST_NUMBER, default=LAST_NUMBER)


def cut(rows: list[T], size: int, place: Callable[[T], object], end: object = None) -> tuple[list[T], str | None]:
    """Return the first `size` rows, and the place of the last of them if there are more rows, else `end`."""
    following = place(rows[size - 1]) if len(rows) > size else end
    return rows[:size], None if following is None else str(following)


class ExpensiveQueries:
    """Runs one query at a time in this process, so that players' requests don't wait for several."""

    def __init__(self) -> None:
        self._lock = DeferredLock()

    async def run(self, query: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **options: P.kwargs) -> T:
        """Return the result of `query`; raise Unavailable while WAITING others wait.

        A query keeps its place until it ends, even if its client leaves.
        """
        if len(self._lock.waiting) >= WAITING:
            raise Unavailable(RETRY_SECONDS)
        return await shielded(self._lock.run(lambda: Deferred.fromCoroutine(query(*arguments, **options))))
