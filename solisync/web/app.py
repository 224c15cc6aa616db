"""The Klein app: its endpoints are the routes, found by its URL map. Only this module uses klein.

All routes are in one flat Klein, because its error handlers don't reach sub-apps, and nested apps take 50 % more CPU
time.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol

from klein import Klein
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, Map

from ..access.large_bodies import LARGE_BYTES, LargeBodies
from ..access.rate_limit import RateLimiter
from ..errors import Forbidden, MethodNotAllowed, NotFound, Refused
from ..process.audit import Happened, Observed, observed
from ..process.logs import serving
from ..process.metrics import Metrics
from ..process.tasks import Task
from ..rules.browser_sessions import is_same_origin
from ..rules.shapes import MAX_BODY
from .error_replies import Presentation, as_json, error_reply
from .handler_limits import OneAtATime, TimeLimit
from .route import Route
from .wire.reply import BODY_COMPRESSED, BODY_TOO_LARGE, Reply
from .wire.request import Request, named_method

HANDLER_SECONDS = 15.0


def check_same_origin(request: Request) -> None:
    """Raise Forbidden unless a page of this service has sent the request."""
    if not is_same_origin(
        content_types=request.fields(b"content-type"),
        hosts=request.fields(b"host"),
        origins=request.fields(b"origin"),
        fetch_sites=request.fields(b"sec-fetch-site"),
    ):
        raise Forbidden


class Callers(Protocol):
    """How a site knows the clients of its routes."""

    def recognize(self, request: Request, route: Route | None) -> str:
        """Identify the client of a request by its head, for limits; raises Refused unless its body may be read."""

    def permit(self, request: Request, route: Route) -> Task[None] | None:
        """Raise Refused for a client without access to this protected route.

        If the database must be asked, return that work, which raises it.
        """

    async def refuse_guest(self, client: str) -> None:
        """Raise Refused if the client is a guest; called after limits, because it asks the database."""


class App:
    """Serves a table of routes: identifies the client of each request, applies the rate limit, and runs the handler.

    Each route is an endpoint of `klein`. The route of a request is found when its head has arrived, because limits and
    bodies depend on it. So `render` replaces that of klein, which would find it later, and whose adapters take 240,000
    instructions. `observer`, if given, is called with each account event.
    """

    _log = Logger()

    def __init__(
        self,
        routes: tuple[Route, ...],
        *,
        callers: Callers,
        reactor: ReactorBase,
        limiter: RateLimiter,
        large_bodies: LargeBodies,
        metrics: Metrics,
        observer: Callable[[Happened], None] | None = None,
        handler_seconds: float = HANDLER_SECONDS,
        present_error: Presentation = as_json,
    ) -> None:
        self._callers = callers
        self._present_error = present_error
        self._limiter = limiter
        self._observer = observer
        self._handler_seconds = handler_seconds
        self._large_bodies = large_bodies
        self._writes = OneAtATime(reactor=reactor, on_refusal=partial(metrics.refused, OneAtATime.name))
        self._time_limit = TimeLimit(reactor=reactor)
        self.klein = klein = Klein()
        self._execute: Callable[..., Any] = klein.execute_endpoint  # declared for Twisted's requests
        klein.url_map.merge_slashes = False  # otherwise klein redirects "//api/me"
        klein.url_map.converters["other"] = _Other
        for route in routes:
            path = _with_converters(route.path, [each.path for each in routes])
            klein.route(path, methods=[route.method], endpoint=route.endpoint)(self._endpoint(route))
        self._urls = UrlMap(klein, {route.endpoint: route for route in routes})
        klein.handle_errors(Exception)(self._send_error)

    def admit(self, request: Request, size: int | None) -> None:
        """Find the route and the client of a request whose head has arrived, and decide on its body; see Resource."""
        too_large = size is not None and size > MAX_BODY
        try:
            route, request.variables = self._urls.find(request.method, request.path)
        except Refused as error:
            request.shared = self._urls.is_shared(error, request.path)
            self._callers.recognize(request, None)
            raise BODY_TOO_LARGE() if too_large else error from None
        request.route, request.shared = route, route.shared
        if too_large:
            raise route.too_large()
        if size != 0 and request.has_compressed_body:
            raise BODY_COMPRESSED()
        request.client_key = client = self._callers.recognize(request, route)
        if size == 0:
            return
        if route.body is None:
            request.drop_body(NotFound())
        elif size is not None and size > LARGE_BYTES:
            self._keep_out(request, route)
            self._large_bodies.admit(client, size)
            request.body.parsing = self._large_bodies.parsing(client, size)

    def _keep_out(self, request: Request, route: Route) -> None:
        """Refuse a client without access; if that needs a query, drop the body after it."""
        asking = self._callers.permit(request, route) if route.protected else None

        def refuse(failure: Failure) -> None:
            if isinstance(failure.value, Refused):
                request.refuse(failure.value)
            else:
                self._log.failure("could not check a client", failure)

        if asking is not None:
            Deferred.fromCoroutine(asking).addErrback(refuse)

    def render(self, request: Request) -> None:
        """Answer a request that has arrived completely."""
        route = request.route
        if request.refusal is not None or route is None:
            request.answer(self._error(request, Failure(request.refusal)))
            return
        work = self._execute(route.endpoint, request, **request.variables)
        # Fast path: skips the timer if the reply is ready, 60,000 instructions, see docs/performance.md
        if not work.called:
            work = self._time_limit.bound(work, self._handler_seconds, on_late=partial(_discard, request))
            request.on_gone = work.cancel
        work.addBoth(self._answer, request)

    def _endpoint(self, route: Route) -> Callable[..., Any]:
        def endpoint(request: Request, **variables: str) -> Awaitable[Reply]:
            return self._reply(request, route, variables)

        endpoint.__name__ = route.name
        return endpoint

    def _send_error(self, request: Any, failure: Failure) -> None:
        """Answer for klein's own resource."""
        error = failure.value
        request.send(self._error(request, Failure(unrouted(error)) if isinstance(error, HTTPException) else failure))

    def _answer(self, result: Reply | Failure, request: Request) -> None:
        try:
            request.answer(self._error(request, result) if isinstance(result, Failure) else result)
        except Exception:
            self._log.failure("could not send a reply")

    def _error(self, request: Request, failure: Failure) -> Reply:
        return self._present_error(request, error_reply(request, failure))

    async def _reply(self, request: Request, route: Route, variables: Mapping[str, str]) -> Reply:
        caller = request.caller
        serving.set({"client": caller.name, "request_id": request.request_id})
        observed.set(None if self._observer is None else Observed(caller.bucket, self._observer))
        if route.protected:
            asking = self._callers.permit(request, route)
            if asking is not None:
                await asking
        client, limit = request.client_key, route.limit
        if limit is not None:
            if route.counts_itself:
                self._limiter.check(limit, client)
            else:
                await self._limiter.admit(limit, caller.bucket if route.limit_by_address else client)
        if not route.for_guests:
            await self._callers.refuse_guest(client)
        try:
            if b"?" in request.uri and route.reads_query:
                request.check_query()
            arguments: dict[str, object] = {**variables}
            for name, read in route.arguments:
                arguments[name] = read(request)
        except Refused:
            if limit is not None and route.counts_itself:
                await self._limiter.admit(limit, client)
            raise
        handler = route.handler
        answer = await (self._writes.run(client, handler, **arguments) if route.writes else handler(**arguments))
        return answer if isinstance(answer, Reply) else Reply.of(answer)


class UrlMap:
    """Finds the route of a request in klein's URL map; HEAD has the routes of GET.

    A path has one spelling, without percent-encoding: otherwise "/api%2Fme" would be "/api/me" here but another path to
    a proxy. werkzeug takes "//api/me" for "/api/me", and "get" for "GET", although methods are case-sensitive.
    Here these have no route.
    """

    def __init__(self, klein: Klein, routes: dict[str, Route]) -> None:
        self._map = klein.url_map.bind("localhost")
        self._routes = routes  # by endpoint
        self._remembered: dict[tuple[bytes, bytes], Route] = {}  # routes of paths without variables

    def find(self, method: bytes, path: bytes) -> tuple[Route, dict[str, str]]:
        """Return the route, and the variables in the path; raises NotFound or MethodNotAllowed."""
        route = self._remembered.get((method, path))
        if route is not None:
            return route, {}
        if not path.startswith(b"/") or path.startswith(b"//") or b"%" in path:
            raise NotFound()
        verb = named_method(method).decode("ascii")
        try:
            rule, variables = self._map.match(path.decode("latin-1"), verb, return_rule=True)
        except HTTPException as error:
            raise unrouted(error) from None
        route = self._routes[rule.endpoint]
        if not variables:
            self._remembered[method, path] = route
        return route, dict(variables)

    def is_shared(self, error: Refused, path: bytes) -> bool:
        """Whether pages of other origins may read this error of `find`."""
        methods = error.methods if isinstance(error, MethodNotAllowed) else ()
        return all(self.find(method.encode("ascii"), path)[0].shared for method in methods)


def _discard(request: Request, result: Reply | Failure) -> None:
    """Log a failure, or free the place of a stream, whose client has gone or has another reply."""
    if isinstance(result, Failure):
        error_reply(request, result)
    elif result.stream is not None:
        result.stream.lost(unread=False)


def unrouted(error: HTTPException) -> Refused:
    """Return werkzeug's error for a path without a route, or without this method, as one of the service."""
    methods = getattr(error, "valid_methods", None)
    return MethodNotAllowed(sorted(methods)) if methods else NotFound()


class _Other(BaseConverter):
    """The last part of a path, unless it is one of these words: /api/replays/recent is no replay."""

    def __init__(self, map: Map, *words: str) -> None:
        super().__init__(map)
        self.regex = rf"(?!(?:{'|'.join(words)})\Z)[^/]+"


def _with_converters(path: str, paths: list[str]) -> str:
    """Return a path of a route in the form of klein, given the paths of all routes."""
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
    words = {each.rpartition("/")[2]: None for each in paths if "{" not in each and re.fullmatch(pattern, each)}
    return re.sub(r"\{(\w+)\}", rf"<other({', '.join(words)}):\1>" if words else r"<\1>", path)
