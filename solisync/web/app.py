"""How one request travels along its route; the only module that knows klein.

One flat Klein, because klein's error handlers don't reach sub-apps and nesting costs half as much again. In front of it
stand the routes as a table, which finds a path in a tenth of the time; what it doesn't have, klein answers.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from klein import Klein
from klein.resource import KleinResource
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.server import NOT_DONE_YET

from ..access.rate_limit import Limit, RateLimiter
from ..access.tokens import Tokens
from ..errors import TooMany
from ..process.logs import serving
from ..process.metrics import Metrics
from .error_replies import error_reply
from .route import Route
from .wire.reply import Reply
from .wire.request import Request

HANDLER_SECONDS = 15.0

Serve = Callable[..., Deferred[bytes]]


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
        self._table = _Table()
        self._klein.url_map.merge_slashes = False  # else "//api/me" is redirected
        for route in routes:
            self._add(route)
        self._klein.handle_errors(Exception)(_failed)

    def resource(self) -> KleinResource:
        """What a Site serves."""
        return _Resource(self._klein, self._table)

    def _add(self, route: Route) -> None:
        def serve(request: Request, **path: str) -> Deferred[bytes]:
            work = Deferred.fromCoroutine(self._answer(route, request, path))
            return work if work.called else self._bounded(work, request)

        path = route.path.replace("{", "<").replace("}", ">")
        self._klein.route(path, methods=[route.method], endpoint=f"{route.method} {path}")(serve)
        self._table.add(route, serve)

    def _bounded(self, work: Deferred[bytes], request: Request) -> Deferred[bytes]:
        """What comes of `work`; or, even while a transaction runs that nothing can stop, a TimeoutError in time."""
        outcome: Deferred[bytes] = Deferred(lambda _: work.cancel())

        def deliver(result: bytes | Failure) -> None:
            if not outcome.called:
                outcome.callback(result)
            elif isinstance(result, Failure):
                error_reply(request, result)  # for the log: the client has gone, or has its answer

        work.addBoth(deliver)
        return outcome.addTimeout(HANDLER_SECONDS, self._reactor)

    async def _answer(self, route: Route, request: Request, path: dict[str, str]) -> bytes:
        request.route = route.path
        request.private = route.private
        serving.set({"client": request.caller.name, "request_id": request.request_id})
        arguments: dict[str, Any] = dict(path)
        if route.limit is not None:
            await self._admit(route.limit, request.caller.bucket)
        if route.protected:
            arguments["player"] = request.player = self._tokens.read_access(request.bearer, self._now())
        if route.body is not None:
            arguments |= route.body.arguments(request)
        for name in route.query:
            arguments[name] = [value.decode("latin-1") for value in request.args.get(name.encode(), [])]
        if route.conditional:
            arguments["if_none_match"] = request.field(b"If-None-Match")
        answer = await route.handler(**arguments)
        reply = answer if isinstance(answer, Reply) else Reply.of(answer)
        return reply.send(request)

    async def _admit(self, limit: Limit, client: str) -> None:
        try:
            await self._limiter.admit(limit, client)
        except TooMany:
            self._metrics.refusals.labels(limit.name).inc()
            raise


class _Table:
    """The routes by method and path."""

    def __init__(self) -> None:
        self._plain: dict[tuple[bytes, bytes], Serve] = {}
        self._patterns: dict[bytes, list[tuple[re.Pattern[bytes], Serve]]] = {}

    def add(self, route: Route, serve: Serve) -> None:
        method, path = route.method.encode("ascii"), route.path.encode("ascii")
        if b"{" not in path:
            self._plain[method, path] = serve
            return
        pattern = re.compile(re.sub(rb"\\{(\w+)\\}", rb"(?P<\1>[^/%]+)", re.escape(path)))
        self._patterns.setdefault(method, []).append((pattern, serve))

    def find(self, method: bytes, path: bytes) -> tuple[Serve | None, dict[str, str]]:
        """What serves this path, and the variables in it; None when there is no such route."""
        serve = self._plain.get((method, path))
        if serve is None:
            for pattern, candidate in self._patterns.get(method, ()):
                match = pattern.fullmatch(path)
                if match is not None:
                    return candidate, {name: value.decode("ascii") for name, value in match.groupdict().items()}
        return serve, {}


class _Resource(KleinResource):
    """Klein, but for what the table has: HEAD, other methods and other paths are for Klein to match."""

    _log = Logger()

    def __init__(self, klein: Klein, table: _Table) -> None:
        super().__init__(klein)
        self._table = table

    def render(self, request: Any) -> Any:
        serve, variables = self._table.find(request.method, request.path)
        if serve is None:
            return super().render(request)
        work = serve(request, **variables)
        if not work.called:
            request.notifyFinish().addErrback(lambda _: work.cancel())  # the client has gone
        work.addBoth(self._answer, request)
        return NOT_DONE_YET

    def _answer(self, result: bytes | Failure, request: Request) -> None:
        try:
            request.answer(_failed(request, result) if isinstance(result, Failure) else result)
        except Exception:
            self._log.failure("could not send an answer")


def _failed(request: Any, failure: Failure) -> bytes:
    return error_reply(request, failure).send(request)
