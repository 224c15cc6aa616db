"""How one request travels along its route; the only module that knows klein.

One flat Klein, because klein's error handlers don't reach sub-apps and nesting costs half as much again. In front of it
stands a table of the paths without variables: most requests need no matching.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from klein import Klein
from klein.resource import KleinResource
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.server import NOT_DONE_YET

from ..errors import TooMany
from ..logs import serving
from ..metrics import Metrics
from ..ratelimit import Limit, RateLimiter
from ..tokens import Tokens
from .error_replies import error_reply
from .reply import Reply
from .request import Request, read_json
from .routes import Route

HANDLER_SECONDS = 15.0

Serve = Callable[[Request], Deferred[bytes]]


class App:
    """Takes a request along its route: limit, then authorisation, then body, then handler."""

    def __init__(
        self,
        routes: tuple[Route, ...],
        *,
        reactor: ReactorBase,
        limiter: RateLimiter,
        tokens: Tokens,
        metrics: Metrics,
        now: Callable[[], datetime],
    ) -> None:
        self._reactor = reactor
        self._limiter = limiter
        self._tokens = tokens
        self._metrics = metrics
        self._now = now
        self._klein = Klein()
        self._plain: dict[tuple[bytes, bytes], Serve] = {}
        self._klein.url_map.merge_slashes = False  # else "//api/me" is redirected
        for route in routes:
            self._add(route)
        self._klein.handle_errors(Exception)(_failed)

    def resource(self) -> KleinResource:
        """What a Site serves."""
        return _Resource(self._klein, self._plain)

    def _add(self, route: Route) -> None:
        def serve(request: Request, **path: str) -> Deferred[bytes]:
            work = Deferred.fromCoroutine(self._answer(route, request, path))
            return work if work.called else work.addTimeout(HANDLER_SECONDS, self._reactor)

        path = route.path.replace("{", "<").replace("}", ">")
        self._klein.route(path, methods=[route.method], endpoint=f"{route.method} {path}")(serve)
        if "<" not in path:
            self._plain[route.method.encode("ascii"), path.encode("ascii")] = serve

    async def _answer(self, route: Route, request: Request, path: dict[str, str]) -> bytes:
        request.route = route.path
        serving.set({"client": request.client_name, "request_id": request.request_id})
        if route.private:
            request.setHeader("Cache-Control", "no-store")
        arguments: dict[str, Any] = dict(path)
        if route.limit is not None:
            await self._admit(route.limit, request.client_bucket)
        if route.protected:
            arguments["player"] = request.player = self._tokens.read_access(request.bearer, self._now())
        if route.body is not None:
            arguments["body"] = read_json(request.body(), route.body)
        if route.raw:
            arguments["raw"] = request.body()
        for name in route.query:
            arguments[name] = [value.decode("latin-1") for value in request.args.get(name.encode(), [])]
        if route.content:
            arguments |= {"content": request.body(), "content_type": request.field("Content-Type") or ""}
        if route.conditional:
            arguments["if_none_match"] = request.field("If-None-Match")
        answer = await route.handler(**arguments)
        reply = answer if isinstance(answer, Reply) else Reply.of(answer)
        return reply.send(request)

    async def _admit(self, limit: Limit, client: str) -> None:
        try:
            await self._limiter.admit(limit, client)
        except TooMany:
            self._metrics.refusals.labels(limit.name).inc()
            raise


class _Resource(KleinResource):
    """Klein, but for what the table of plain paths has: HEAD, other methods and other paths are for Klein to match."""

    _log = Logger()

    def __init__(self, klein: Klein, plain: Mapping[tuple[bytes, bytes], Serve]) -> None:
        super().__init__(klein)
        self._plain = plain

    def render(self, request: Any) -> Any:
        serve = self._plain.get((request.method, request.path))
        if serve is None:
            return super().render(request)
        work = serve(request)
        if not work.called:
            request.notifyFinish().addErrback(lambda _: work.cancel())  # the client has gone
        work.addErrback(partial(_failed, request)).addCallback(request.answer)
        work.addErrback(lambda failure: self._log.failure("could not send an answer", failure))
        return NOT_DONE_YET


def _failed(request: Any, failure: Failure) -> bytes:
    return error_reply(request, failure).send(request)
