"""Routes, and how handlers declare them. `python -m solisync.web` prints all routes."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from inspect import isfunction, signature
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, get_type_hints

import msgspec

from ..access.rate_limit import AUTH, Limit
from ..errors import Code
from ..rules.browser_sessions import COOKIE, SessionCookie, is_secure
from ..rules.json_body import read_json
from ..rules.queries import parameters_of, read_query
from ..rules.sessions import REFRESH_LIFETIME, user_agent
from ..settings.settings import ServingSettings
from ..storage.operators.acts import Actor
from .kept_replies import takes_gzip
from .wire.reply import BODY_TOO_LARGE, Abandoned, Reply
from .wire.request import Request

# The errors of requests without a route yet, and of failures of the service.
ANY_ROUTE: tuple[Code, ...] = (
    "bad_request",
    "request_timeout",
    "header_too_large",
    "transfer_encoding",
    "internal",
    "unavailable",
)


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON body. `read` turns its bytes into the handler's argument, by default an instance of `shape`.

    `read` raises BadRequest for an invalid body. An `optional` body may be empty, and then has the defaults of `shape`.
    The OpenAPI document shows `example` and describes `shape`, and also `narrower`, a more detailed shape that some of
    the bodies have.
    """

    shape: type[msgspec.Struct]
    read: Callable[[bytes], object] | None = None
    example: object = None
    narrower: type[msgspec.Struct] | None = None
    optional: bool = False
    errors: ClassVar[tuple[Code, ...]] = ("body_too_large", "bad_json", "bad_field")

    @property
    def documented(self) -> list[type[msgspec.Struct]]:
        """The alternative shapes of a body."""
        return [self.shape] if self.narrower is None else [self.narrower, self.shape]

    def decode(self, request: Request) -> object:
        """Return the message in the body of a request."""
        body = request.body
        with body.parsing:
            content = body.read()
            if self.optional and not content:
                return self.shape()
            return read_json(content, self.shape) if self.read is None else self.read(content)


@dataclass(frozen=True, slots=True)
class Upload:
    """An unchecked body of one of these media types. `too_large` replaces the usual error for a body over the limit."""

    media_types: tuple[str, ...]
    too_large: Callable[[], Abandoned]

    @property
    def errors(self) -> tuple[Code, ...]:
        """The codes of errors in addition to the handler's own."""
        return (self.too_large().code,)


@dataclass(frozen=True, slots=True)
class Content:
    """An answer of one of these media types."""

    media_types: tuple[str, ...]


PAGE = Content(("text/html",))


@dataclass(frozen=True, slots=True)
class EventStream:
    """An answer that stays open: Server-Sent Events with these names, each with data of its shape."""

    shapes: Mapping[str, type[msgspec.Struct]]


Reader = Callable[[Any], object]  # of a Request that has passed the checks of its route
Facts = dict[str, Any]
ReplyingHandler = Callable[..., Awaitable[msgspec.Struct | Reply]]


class RequestValue(NamedTuple):
    """How an argument of handlers is read from a request, and which routes have it."""

    read: Reader
    offered: Callable[["Route"], object] = lambda route: True  # whether a route has it


ARGUMENTS = {
    "player": RequestValue(attrgetter("claims.user_id"), lambda route: route.protected and not route.for_admins),
    "session": RequestValue(attrgetter("claims"), lambda route: route.protected and not route.for_admins),
    "admin": RequestValue(attrgetter("admin"), lambda route: route.protected and route.for_admins),
    "actor": RequestValue(
        lambda request: Actor("admin", request.admin.admin, request.caller.bucket, request.request_id),
        lambda route: route.protected and route.for_admins,
    ),
    "admin_cookie": RequestValue(attrgetter("admin_cookie"), attrgetter("for_admins")),
    "address": RequestValue(attrgetter("caller.bucket")),
    "client": RequestValue(attrgetter("caller.bucket"), attrgetter("counts_itself")),
    "cookie": RequestValue(
        lambda request: SessionCookie.read(
            COOKIE, REFRESH_LIFETIME, request.fields(b"cookie"), secure=is_secure(request.fields(b"origin"))
        ),
        attrgetter("same_origin"),
    ),
    "body": RequestValue(
        lambda request: request.route.body.decode(request), lambda route: isinstance(route.body, Json)
    ),
    "query": RequestValue(lambda request: read_query(request.route.query, request.query), attrgetter("query")),
    "content": RequestValue(lambda request: request.body.read(), lambda route: isinstance(route.body, Upload)),
    "content_type": RequestValue(
        lambda request: request.field(b"content-type") or "", lambda route: isinstance(route.body, Upload)
    ),
    "if_none_match": RequestValue(lambda request: request.field(b"if-none-match")),
    "gzip": RequestValue(lambda request: takes_gzip(request.field(b"accept-encoding"))),
    "user_agent": RequestValue(lambda request: user_agent(request.field(b"user-agent"))),
    "head_only": RequestValue(lambda request: request.method == b"HEAD"),
}
"""The arguments that handlers may take in addition to variables of the path and parameters of the query."""


@dataclass(frozen=True)
class Route:
    """One method of one path: authorisation, rate limit, request and answer.

    The handler is called with the arguments that its parameters name: variables of the path, as text, and entries of
    ARGUMENTS. It returns a message shape or a Reply. If the route lacks an argument whose parameter has no default, it
    raises TypeError.

    `protected` routes need an access token, or with `for_admins` the session of an admin. Guests need `for_guests`.
    `same_origin` routes answer only requests from pages of this service. `limit` counts the requests of a player if
    `protected` and not `limit_by_address`, else of an address. With `counts_itself`, the handler counts them, for its
    argument `client`. `private` replies, which all replies of `protected` and `same_origin` routes are, must not be
    cached. `shared` replies may be read by pages of origins that the operator lists, unless `same_origin`.

    The other fields are for the OpenAPI document: `name` is a method of solisync.client. `tag` groups routes; a route
    without a tag is left out. `answer` is a message shape, a list of one, Content or EventStream. `query` is the shape
    of the query. `errors` are the handler's own. `links` names routes that continue from the answer, with the places
    in it of their path variables. `sets_cookie`: the answer has a cookie.
    """

    method: str
    path: str
    handler: ReplyingHandler
    _: KW_ONLY
    name: str
    tag: str = ""
    summary: str
    protected: bool = False
    for_guests: bool = True
    same_origin: bool = False
    for_admins: bool = False
    private: bool = False
    shared: bool = True
    limit: Limit | None = None
    limit_by_address: bool = False
    counts_itself: bool = False
    body: Json | Upload | None = None
    query: type[msgspec.Struct] | None = None
    answer: object = None
    errors: tuple[Code, ...] = ()
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sets_cookie: bool = False
    endpoint: str = field(init=False)  # of klein

    def __post_init__(self) -> None:
        object.__setattr__(self, "endpoint", f"{self.method} {self.path}")
        object.__setattr__(self, "private", self.private or self.protected or self.same_origin)
        object.__setattr__(self, "shared", self.shared and not self.same_origin)
        parameters = signature(self.handler).parameters
        offered = {*self.variables, *(name for name, _ in self.arguments)}
        needed = {name for name, parameter in parameters.items() if parameter.default is parameter.empty}
        wrong = (needed - offered) | (set(self.variables) - parameters.keys())
        if wrong:
            raise TypeError(f"{self.method} {self.path} and its handler differ in {', '.join(sorted(wrong))}")

    @property
    def listed(self) -> bool:
        """Whether the OpenAPI document has the route."""
        return bool(self.tag)

    @property
    def variables(self) -> list[str]:
        """The names of the variables in the path."""
        return re.findall(r"\{(\w+)\}", self.path)

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters of the query, each with its type."""
        return {} if self.query is None else parameters_of(self.query)

    @cached_property
    def arguments(self) -> tuple[tuple[str, Reader], ...]:
        """The handler's arguments, except path variables, and their readers."""
        known = {name: argument.read for name, argument in ARGUMENTS.items() if argument.offered(self)}
        return tuple((name, known[name]) for name in signature(self.handler).parameters if name in known)

    @cached_property
    def reads_query(self) -> bool:
        """Whether the answer may depend on the query. Pages, and the files that they load, take any query."""
        return self.answer is not PAGE

    @property
    def conditional(self) -> bool:
        """Whether the handler uses If-None-Match."""
        return "if_none_match" in dict(self.arguments)

    @property
    def too_large(self) -> Callable[[], Abandoned]:
        """Makes the error for a body over the limit."""
        return self.body.too_large if isinstance(self.body, Upload) else BODY_TOO_LARGE

    @cached_property
    def writes(self) -> bool:
        """Whether the handler writes rows of the player; such requests of one player run one at a time."""
        return self.protected and self.method != "GET"

    @property
    def codes(self) -> tuple[Code, ...]:
        """The codes of all errors of the route."""
        codes: list[Code] = [*ANY_ROUTE, "content_encoding"]
        codes += ("body_too_large",) if self.body is None else self.body.errors
        if self.variables:  # a percent sign in a variable makes another path
            codes.append("not_found")
        if self.reads_query:
            codes.append("bad_query")
        if self.same_origin:
            codes.append("forbidden")
        if self.protected:
            codes += ("unauthorized",) if self.for_admins else ("unauthorized", "suspended")
        if not self.for_guests:
            codes.append("guest")
        if self.limit or self.writes or self.body is not None:  # large bodies have a budget
            codes.append("rate_limited")
        return tuple(dict.fromkeys((*codes, *self.errors)))


Handler = TypeVar("Handler", bound=ReplyingHandler)


class Declared(NamedTuple):
    """A route as its handler declares it; `facts` are fields of Route, or `alias`, a second path."""

    method: str
    path: str
    facts: Facts


def declaring(method: str) -> Callable[..., Callable[[Handler], Handler]]:
    """Return the decorator `(path, **facts)` for handlers of this HTTP method."""

    def declare(path: str, **facts: Any) -> Callable[[Handler], Handler]:
        def mark(handler: Handler) -> Handler:
            handler.__dict__["declared"] = Declared(method, path, facts)
            return handler

        return mark

    return declare


get, post, put, delete = map(declaring, ("GET", "POST", "PUT", "DELETE"))


class Tagged(Protocol):
    """A resource, whose methods declare routes; `tag` groups them in the OpenAPI document."""

    tag: ClassVar[str]


def routes_of(resource: Tagged, settings: ServingSettings) -> Iterator[Route]:
    """Yield the routes that the methods of a resource declare, in the order of the methods.

    The method supplies what its declaration leaves out: name, summary (first line of the docstring), body and query
    (types of these parameters), answer (return type). A fact may be a function of the settings. No route if `only_if`
    is false.
    """
    for name, function in vars(type(resource)).items():
        if hasattr(function, "declared"):
            method, path, facts = function.declared
            yield from _routes(method, path, getattr(resource, name), {"tag": resource.tag, **facts}, settings)


def _routes(
    method: str, path: str, handler: ReplyingHandler, facts: Facts, settings: ServingSettings
) -> Iterator[Route]:
    hints = get_type_hints(handler)
    known: Facts = {
        "name": handler.__name__,
        "summary": (handler.__doc__ or "").partition("\n")[0].removesuffix("."),
        "answer": None if hints["return"] is Reply else hints["return"],
    }
    if "body" in hints:
        known["body"] = Json(hints["body"])
    if "query" in hints:
        known["query"] = hints["query"]
    known |= {key: value(settings) if isfunction(value) else value for key, value in facts.items()}
    if not known.pop("only_if", True):
        return
    alias, alias_tag = known.pop("alias", None), known.pop("alias_tag", known["tag"])
    if known.get("limit") is AUTH:
        known["limit"] = settings.auth_limit
    route = Route(method, path, handler, **known)
    yield route
    if alias is not None:
        facts = {"name": f"{route.name}_alias", "tag": alias_tag, "summary": f"Alias of {method} {path}"}
        yield replace(route, path=alias, **facts)
