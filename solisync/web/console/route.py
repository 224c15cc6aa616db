"""A row of the table of the console's routes."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from ...access.rate_limit import ADMIN
from ..route import Route
from ..wire.reply import Reply

ROOT = "/api/admin"


def _route(method: str, path: str, handler: Callable[..., Awaitable[msgspec.Struct | Reply]], **more: Any) -> Route:
    """A route under ROOT, for admins who have signed in, unless `more` says otherwise.

    What changes something is for pages of the console alone; anything else counts as reading.
    """
    row = {"for_admins": True, "protected": True, "same_origin": method != "GET", "private": True, "shared": False}
    return Route(method, f"{ROOT}{path}", handler, **{**row, "limit": ADMIN, **more})


get, post, put, delete = (partial(_route, method) for method in ("GET", "POST", "PUT", "DELETE"))
