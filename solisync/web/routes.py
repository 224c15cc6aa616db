"""What a route is. The table of all routes is in solisync.web.app."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ..ratelimit import Limit
from .reply import Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path: who may call it, how often, what goes in and what comes out.

    The handler is called with keyword arguments: each variable of the path, `body` when there is a shape for it, with
    `raw` also the bytes that it was decoded from, and `player`, the user id of the access token, when the route is
    protected. `answer` is a shape or a list of one.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[msgspec.Struct | Reply]]
    summary: str
    protected: bool = False
    limit: Limit | None = None
    body: type[msgspec.Struct] | None = None
    raw: bool = False
    answer: Any = None
    errors: tuple[int, ...] = ()

    @property
    def private(self) -> bool:
        """Whether the answer is nobody else's business, so that no cache may keep it."""
        return self.protected or self.path.startswith("/api/auth/")
