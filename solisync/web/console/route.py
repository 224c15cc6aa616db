"""How the handlers of the console declare their routes."""

from collections.abc import Callable
from typing import Any

from ...access.rate_limit import ADMIN
from ...errors import Code
from ..route import Handler, declaring

ROOT = "/api/admin"
NO_PLAYER: tuple[Code, ...] = ("user_not_found",)
NO_REPLAY: tuple[Code, ...] = ("replay_not_found",)


def _declaring(method: str) -> Callable[..., Callable[[Handler], Handler]]:
    """Return the decorator for a route under ROOT, for admins who have signed in, unless the facts say otherwise.

    Only pages of the console may change something; all other requests count as reading.
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
