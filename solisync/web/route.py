"""What a route is. The table of all routes is in solisync.web.routes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..access.rate_limit import Limit
from .wire.reply import Refusal, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path: who may call it, how often, what goes in and what comes out.

    The handler is called with keyword arguments: each variable of the path, `body` when there is a shape for it, with
    `raw` also the bytes that it was decoded from, and `player`, the user id of the access token, when the route is
    protected. `answer` is a shape or a list of one. A handler that decodes its body by itself gets only `raw`, and
    `described` is the shape of it for the OpenAPI document. Each parameter in `query` is the list of its values; the
    shape of one is for the document only. So are `links`: which route goes on from the answer, and where in the answer
    the variables of its path are. A route that is not `listed` is left out of it.

    What is not JSON has media types instead of shapes: with `content` the handler gets `content`, the bytes of the
    body, and `content_type`, that header field or "", both unchecked. With `conditional` it gets `if_none_match`, that
    field or None. `too_large` is what a body over the ceiling is refused with, if that is not what all routes say.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[msgspec.Struct | Reply]]
    summary: str
    protected: bool = False
    limit: Limit | None = None
    body: type[msgspec.Struct] | None = None
    raw: bool = False
    described: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    content: tuple[str, ...] = ()
    too_large: Refusal | None = None
    conditional: bool = False
    answer: Any = None
    answer_content: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    listed: bool = True

    @property
    def private(self) -> bool:
        """Whether the answer is nobody else's business, so that no cache may keep it."""
        return self.protected or self.path.startswith("/api/auth/")


def body_refusals(routes: tuple[Route, ...]) -> dict[tuple[bytes, bytes], Refusal]:
    """What too large a body is told where that is not what all routes say, by method and path."""
    return {
        (route.method.encode("ascii"), route.path.encode("ascii")): route.too_large
        for route in routes
        if route.too_large is not None
    }
