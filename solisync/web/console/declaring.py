"""Declarations of the console's routes, and of the pages of its lists (docs/console.md "Lists")."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta, Struct

from ...access.rate_limit import ADMIN
from ...errors import BadRequest, Code
from ...rules.queries import EARLIER
from ...storage.paging import LAST_NUMBER
from ..route import Handler, declaring

ROOT = "/api/admin"
NO_PLAYER: tuple[Code, ...] = ("player_not_found",)
NO_REPLAY: tuple[Code, ...] = ("replay_not_found",)

TEXT_MAX = 100  # code points in a search text
SHOWN = 50  # rows of a page, unless the query has a limit
MOST = 100

Size = Annotated[int, Meta(ge=1, le=MOST, description=f"rows of a page; {SHOWN} by default")]
Place = Annotated[str, Meta(max_length=TEXT_MAX, description="`next` of the previous page; absent for the first page")]
Text = Annotated[str, Meta(max_length=TEXT_MAX)]


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
