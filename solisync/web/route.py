"""What a route is. solisync.web.routes has the table of all routes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import msgspec

from ..access.rate_limit import Limit
from ..errors import Code
from ..rules.json_body import read_json
from .wire.reply import Refusal, Reply
from .wire.request import BODY_TOO_LARGE, Request

# What a request can be answered with before there is a route, or when the service fails.
ANY_ROUTE: tuple[Code, ...] = ("bad_request", "request_timeout", "header_too_large", "internal", "unavailable")


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON body. The handler gets `body`: what `read` returns for the bytes, by default an instance of `shape`.

    `read` raises BadRequest for an invalid body. The OpenAPI document describes `shape`, and shows `example`.
    """

    shape: type[msgspec.Struct]
    read: Callable[[bytes], Any] | None = None
    example: Any = None
    errors: ClassVar[tuple[Code, ...]] = ("body_too_large", "bad_json", "bad_field")

    def arguments(self, request: Request) -> dict[str, Any]:
        """What the handler gets."""
        body = request.body()
        return {"body": read_json(body, self.shape) if self.read is None else self.read(body)}


@dataclass(frozen=True, slots=True)
class Upload:
    """A body of one of these media types. The handler gets `content`, the bytes, and `content_type`, that header or "".

    Both are unchecked. `too_large` replaces the usual error for a body over the ceiling.
    """

    media_types: tuple[str, ...]
    too_large: Refusal

    @property
    def errors(self) -> tuple[Code, ...]:
        """The codes of errors beside the handler's own."""
        return (self.too_large.code,)

    def arguments(self, request: Request) -> dict[str, Any]:
        """What the handler gets."""
        return {"content": request.body(), "content_type": request.field(b"content-type") or ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path: authorisation, rate limit, and what goes in and comes out.

    The handler is called with keyword arguments:

    - each variable of `path`, as text
    - `player`, the user id in the access token, if `protected`; with `session`, also `access_expiry`, its `exp`
    - the arguments that `body` names, if there is a body
    - each name in `query`: the list of that parameter's values
    - `if_none_match`, that header or None, if `conditional`
    - `gzip`, whether the client understands it, if `compressed`
    - `cookie`, the browser's SessionCookie, if `same_origin`: then pages of this service alone may send the request
    - `user_agent`, what the client calls itself or None, if `user_agent`
    - `head_only`, whether the client asks for the headers alone, if `streamed`
    - `client`, whose request it has to count against `limit`, if `counts`

    `limit` counts the requests of an address, `player_limit` those of a player.

    It returns a message shape or a Reply. The rest describes the route in the OpenAPI document: `name` is that of the
    method of solisync.client, and `tag` groups routes by noun; `answer` is a message shape or a list of one, or
    `answer_content` the media types of another reply; `query` has the shape of one value; `errors` are the codes of the
    handler's own errors; `links` has the names of routes that continue from the answer, with the places in it of the
    variables of their paths. Routes that are not `listed` are left out.
    """

    method: str
    path: str
    name: str
    tag: str
    handler: Callable[..., Awaitable[msgspec.Struct | Reply]]
    summary: str
    protected: bool = False
    session: bool = False
    limit: Limit | None = None
    player_limit: Limit | None = None
    counts: bool = False
    body: Json | Upload | None = None
    query: Mapping[str, Any] = field(default_factory=dict)
    conditional: bool = False
    compressed: bool = False
    same_origin: bool = False
    user_agent: bool = False
    streamed: bool = False
    answer: Any = None
    answer_content: tuple[str, ...] = ()
    errors: tuple[Code, ...] = ()
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    listed: bool = True

    @property
    def private(self) -> bool:
        """Whether the reply concerns one player, so that no cache may keep it."""
        return self.protected or self.same_origin or self.path.startswith("/api/auth/")

    @property
    def shared(self) -> bool:
        """Whether pages of the origins that the operator lists may read the reply."""
        return not self.same_origin and self.tag != "pages"

    @property
    def too_large(self) -> Refusal:
        """The error for a body over the ceiling."""
        return self.body.too_large if isinstance(self.body, Upload) else BODY_TOO_LARGE

    @property
    def writes(self) -> bool:
        """Whether the handler writes rows of the player, and so waits for other requests of that player which do."""
        return self.protected and self.method != "GET"

    @property
    def codes(self) -> tuple[Code, ...]:
        """The codes of all errors that the route can answer with."""
        codes: list[Code] = [*ANY_ROUTE, *(("body_too_large",) if self.body is None else self.body.errors)]
        if "{" in self.path:  # with a percent sign in a variable it is another path
            codes.append("not_found")
        if self.query:
            codes.append("bad_query")
        if self.same_origin:
            codes.append("forbidden")
        if self.protected:
            codes.append("unauthorized")
        if self.limit or self.player_limit or self.writes or self.body is not None:  # large bodies have a budget
            codes.append("rate_limited")
        return (*codes, *self.errors)


def aliased(route: Route, *, alias: str, listed: bool = True) -> tuple[Route, Route]:
    """A route, and the same at another path, `listed` or not."""
    described = f"Alias of {route.method} {route.path}"
    return route, replace(route, path=alias, name=f"{route.name}_alias", summary=described, listed=listed)
