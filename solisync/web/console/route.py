"""Code that the resources of the console share.

It declares routes and the pages of lists (docs/console.md "Lists"), and limits expensive
queries.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, ParamSpec, TypeVar

from msgspec import Meta, Struct
from twisted.internet.defer import Deferred, DeferredLock

from ...access.rate_limit import ADMIN
from ...errors import BadRequest, Code, Unavailable
from ...process.shielded import Task, shielded
from ...rules.queries import EARLIER
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
Place = Annotated[str, Meta(max_length=TEXT_MAX, description="`next` of the previous page; absent for the first page")]
Text = Annotated[str, Meta(max_length=TEXT_MAX)]

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


class Older(Struct, frozen=True):
    """A page of a list, newest first."""

    before: Place | None = None
    limit: Size = SHOWN


def row_number(before: str | None) -> int:
    """Return the number of the row before which a page begins; raises BadRequest."""
    if before is None:
        return LAST_NUMBER
    if not (re.fullmatch("[1-9][0-9]{0,18}", before) and int(before) <= LAST_NUMBER):
        raise BadRequest("bad_query", f"before must be {EARLIER}")
    return int(before)


class ExpensiveQueries:
    """Runs one query at a time in this process, so that players' requests don't wait for several."""

    def __init__(self) -> None:
        self._lock = DeferredLock()

    async def run(self, query: Callable[P, Task[T]], *arguments: P.args, **options: P.kwargs) -> T:
        """Return the result of `query`; raise Unavailable while WAITING others wait.

        A query keeps its place until it ends, even if its client leaves.
        """
        if len(self._lock.waiting) >= WAITING:
            raise Unavailable(RETRY_SECONDS)
        return await shielded(self._lock.run(lambda: Deferred.fromCoroutine(query(*arguments, **options))))
