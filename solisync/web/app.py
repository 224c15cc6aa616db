"""How one request travels along its route; the only module that knows klein.

One flat Klein, because klein's error handlers don't reach sub-apps and nesting costs half as much again.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from klein import Klein
from klein.resource import KleinResource
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from ..ratelimit import RateLimiter
from ..tokens import Tokens
from .error_replies import error_reply
from .reply import Reply
from .request import Request, read_json
from .routes import Route

HANDLER_SECONDS = 15.0


class App:
    """Takes a request along its route: limit, then authorisation, then body, then handler."""

    def __init__(
        self,
        routes: tuple[Route, ...],
        *,
        reactor: ReactorBase,
        limiter: RateLimiter,
        tokens: Tokens,
        now: Callable[[], datetime],
    ) -> None:
        self._reactor = reactor
        self._limiter = limiter
        self._tokens = tokens
        self._now = now
        self._klein = Klein()
        self._klein.url_map.merge_slashes = False  # else "//api/me" is redirected
        for route in routes:
            self._add(route)
        self._klein.handle_errors(Exception)(_failed)

    def resource(self) -> KleinResource:
        """What a Site serves."""
        return self._klein.resource()

    def _add(self, route: Route) -> None:
        def serve(request: Request, **path: str) -> Deferred[bytes]:
            work = Deferred.fromCoroutine(self._answer(route, request, path))
            return work.addTimeout(HANDLER_SECONDS, self._reactor)

        path = route.path.replace("{", "<").replace("}", ">")
        self._klein.route(path, methods=[route.method], endpoint=f"{route.method} {path}")(serve)

    async def _answer(self, route: Route, request: Request, path: dict[str, str]) -> bytes:
        if route.private:
            request.setHeader("Cache-Control", "no-store")
        arguments: dict[str, Any] = dict(path)
        if route.limit is not None:
            await self._limiter.admit(route.limit, request.client_bucket)
        if route.protected:
            arguments["player"] = self._tokens.read_access(request.bearer, self._now())
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


def _failed(request: Any, failure: Failure) -> bytes:
    return error_reply(request, failure).send(request)
