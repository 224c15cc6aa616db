"""The route table, and how one request travels along its route; the only module that knows klein.

One flat Klein, because klein's error handlers don't reach sub-apps and nesting costs half as much again. The table
is dispatch, authorisation, limits and the OpenAPI document at once: what it doesn't say, no route does.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from klein import Klein
from klein.resource import KleinResource
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from .. import ratelimit
from ..ratelimit import RateLimiter
from ..rules.accounts import AuthRequest, Me, RefreshRequest, TokenPair
from ..rules.analytics import Batch, Receipt
from ..rules.avatars import AVATAR_TOO_LARGE, AVATAR_TYPES
from ..rules.challenge import DailyChallenge
from ..rules.leaderboard import Entry, OptIn
from ..rules.replays import Recent, Replay, Uploaded
from ..rules.shapes import Ok
from ..rules.sync import Payload, SyncAnswer
from ..tokens import Tokens
from .accounts import Accounts
from .analytics import Analytics
from .avatars import Avatars
from .challenge import Challenge
from .error_replies import error_reply
from .health import Alive, Health, Ready
from .leaderboard import Leaderboard
from .openapi import OpenApi
from .replays import Replays
from .reply import Refusal, Reply
from .request import Request, read_json
from .routes import Route
from .sessions import Sessions
from .sync import Sync

HANDLER_SECONDS = 15.0


def routes(
    *,
    accounts: Accounts,
    sessions: Sessions,
    avatars: Avatars,
    sync: Sync,
    leaderboard: Leaderboard,
    challenge: Challenge,
    replays: Replays,
    analytics: Analytics,
    health: Health,
    openapi: OpenApi,
) -> tuple[Route, ...]:
    """Every route of the service."""
    return (
        Route(
            method="POST",
            path="/api/auth/register",
            handler=accounts.register,
            summary="Create an account and begin its first session",
            limit=ratelimit.AUTH,
            body=AuthRequest,
            answer=TokenPair,
            errors=(409,),
        ),
        Route(
            method="POST",
            path="/api/auth/login",
            handler=sessions.login,
            summary="Begin a session",
            limit=ratelimit.AUTH,
            body=AuthRequest,
            answer=TokenPair,
            errors=(401,),
        ),
        Route(
            method="POST",
            path="/api/auth/refresh",
            handler=sessions.refresh,
            summary="Spend a refresh token for a new pair of tokens",
            limit=ratelimit.AUTH,
            body=RefreshRequest,
            answer=TokenPair,
            errors=(401,),
        ),
        Route(
            method="GET",
            path="/api/me",
            handler=accounts.me,
            summary="Show one's own profile",
            protected=True,
            answer=Me,
            errors=(404,),
        ),
        Route(
            method="DELETE",
            path="/api/account",
            handler=accounts.delete,
            summary="Delete one's account and all that belongs to it",
            protected=True,
            answer=Ok,
        ),
        Route(
            method="PUT",
            path="/api/me/avatar",
            handler=avatars.upload,
            summary="Set one's avatar",
            protected=True,
            content=AVATAR_TYPES,
            too_large=Refusal(400, AVATAR_TOO_LARGE),
            answer=Me,
            errors=(404,),
        ),
        Route(
            method="GET",
            path="/avatars/{user_id}.{extension}",
            handler=avatars.show,
            summary="Show a player's avatar",
            protected=True,
            conditional=True,
            answer_content=AVATAR_TYPES,
            errors=(404,),
        ),
        Route(
            method="GET",
            path="/api/sync/pull",
            handler=sync.pull,
            summary="Show one's stored progress",
            protected=True,
            answer=SyncAnswer,
            errors=(404,),
        ),
        Route(
            method="POST",
            path="/api/sync/push",
            handler=sync.push,
            summary="Merge a device's progress into the stored one",
            protected=True,
            body=Payload,
            raw=True,
            answer=SyncAnswer,
            errors=(404,),
        ),
        Route(
            method="GET",
            path="/api/leaderboard",
            handler=leaderboard.show,
            summary="List the best players who want to be seen",
            protected=True,
            answer=list[Entry],
        ),
        Route(
            method="POST",
            path="/api/leaderboard/opt-in",
            handler=leaderboard.opt_in,
            summary="Appear on the leaderboard, or change one's name there",
            protected=True,
            body=OptIn,
            answer=Ok,
            errors=(404,),
        ),
        Route(
            method="DELETE",
            path="/api/leaderboard/opt-in",
            handler=leaderboard.opt_out,
            summary="Disappear from the leaderboard",
            protected=True,
            answer=Ok,
            errors=(404,),
        ),
        Route(
            method="POST",
            path="/api/replays",
            handler=replays.upload,
            summary="Store a replay, to the byte",
            protected=True,
            raw=True,
            described=Replay,
            answer=Uploaded,
            errors=(400, 404, 413),
        ),
        Route(
            method="GET",
            path="/api/replays/recent",
            handler=replays.list_recent,
            summary="List the newest replays of everybody",
            query=("limit",),
            answer=list[Recent],
            errors=(400,),
        ),
        Route(
            method="GET",
            path="/api/replays/{replay_id}",
            handler=replays.fetch,
            summary="Get a replay as it was uploaded",
            conditional=True,
            answer=Replay,
            errors=(404,),
        ),
        Route(
            method="GET",
            path="/api/daily-challenge",
            handler=challenge.daily,
            summary="Show the deal of the day and its goal",
            answer=DailyChallenge,
        ),
        Route(
            method="POST",
            path="/api/analytics",
            handler=analytics.receive,
            summary="Report what happened in a game",
            limit=ratelimit.ANALYTICS,
            raw=True,
            described=Batch,
            answer=Receipt,
            errors=(400, 413),
        ),
        *(
            Route(method="GET", path=path, handler=health.live, summary="Whether the process is alive", answer=Alive)
            for path in ("/api/health", "/health")
        ),
        *(
            Route(
                method="GET",
                path=path,
                handler=health.ready,
                summary="Whether the service can do its work",
                answer=Ready,
            )
            for path in ("/api/health/ready", "/health/ready")
        ),
        Route(
            method="GET",
            path="/api/openapi.json",
            handler=openapi.document,
            summary="This interface as an OpenAPI 3.1 document",
        ),
    )


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
