"""Identifies admins by their sessions, and refuses other requests: docs/console.md "Who gets in"."""

from functools import partial
from typing import Any

from twisted.python.failure import Failure
from twisted.web.server import NOT_DONE_YET

from ...errors import Forbidden, Refused, TooMany, Unauthorized
from ...postgres.database import Database
from ...rules.administration import COOKIE, SESSION_LIFETIME
from ...rules.browser_sessions import SessionCookie, host_of, is_loopback, is_secure
from ...rules.recovery import digest
from ...storage import admins
from ..app import App, check_same_origin
from ..error_replies import error_reply
from ..route import Route
from ..wire.reply import Refusal, Reply
from ..wire.request import Request
from .signing_in import LateAnswers, LiveSecrets


class AdminsApp(App):
    """The routes for admins. Checks the host of a request, then the page that sent it, then the session.

    `hosts` are names besides loopback under which the console is served over HTTPS. If there are any, only pages under
    these names may change something, and cookies are limited to HTTPS.
    """

    def __init__(self, routes: tuple[Route, ...], *, database: Database, hosts: frozenset[str], **common: Any) -> None:
        super().__init__(routes, observer=None, **common)
        self._database = database
        self._hosts = hosts
        self._sessions = LiveSecrets(partial(database.run, admins.live_sessions), reactor=common["reactor"])
        self._late_answers = LateAnswers(reactor=common["reactor"])

    def admit(self, request: Request, size: int | None) -> Refusal | None:
        """Admit a request as for players; raises Forbidden if the host isn't the console's, before any body is read."""
        self._check_host(request)
        return super().admit(request, size)

    def render(self, request: Any) -> Any:
        try:
            self._check_host(request)
            if not request.uri.startswith(
                b"/"
            ):  # the host in an absolute URI would override the checked one (RFC 9112 §3.2.2)
                raise Forbidden
        except Refused:
            return self._refuse(request)
        return super().render(request)

    def _refuse(self, request: Request) -> Any:
        request.answer(error_reply(request, Failure()))
        return NOT_DONE_YET

    def _answer(self, result: Reply | Failure, request: Request) -> None:
        """Answer as for players, but delay the answer to a client that has sent too many wrong codes."""
        if isinstance(result, Failure) and result.check(TooMany) and not request.route.protected:
            reply = self._error(request, result)
            self._late_answers.hold(request, lambda: request.answer(reply))
        else:
            super()._answer(result, request)

    def _check_host(self, request: Request) -> None:
        """Raise Forbidden for a foreign host name, whose pages could otherwise read the replies (DNS rebinding)."""
        host = host_of(request.fields(b"host"))
        if host is None or not (host in self._hosts or is_loopback(host)):
            raise Forbidden

    def _recognize(self, request: Request, route: Route) -> str:
        request.admin_cookie = SessionCookie.read(
            COOKIE, SESSION_LIFETIME, request.fields(b"cookie"), secure=bool(self._hosts)
        )
        if route.same_origin:
            check_same_origin(request)
            if self._hosts and not (
                is_secure(request.fields(b"origin")) and host_of(request.fields(b"host")) in self._hosts
            ):
                raise Forbidden
        elif route.protected and request.fields(b"sec-fetch-site") not in ([], ["same-origin"]):
            raise Forbidden
        return request.caller.bucket

    async def _authenticate(self, request: Request) -> str:
        token = request.admin_cookie.token
        if token is None or request.fields(b"authorization"):
            raise Unauthorized
        secret = digest(token)
        if not await self._sessions.knows(secret):
            raise Unauthorized
        request.admin = await self._database.run(admins.find, secret)
        if request.admin is None:
            self._sessions.forget(secret)
            raise Unauthorized
        return request.admin.admin
