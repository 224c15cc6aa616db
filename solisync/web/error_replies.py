"""Replies for exceptions: JSON, or a page for a browser that asks for one (docs/pages.md "How a page is made")."""

import re
from collections.abc import Callable
from datetime import UTC

import msgspec
from twisted.internet.defer import CancelledError, TimeoutError
from twisted.logger import Logger, LogLevel
from twisted.python.failure import Failure

from ..errors import (
    AccountSuspended,
    Declined,
    Interrupted,
    MethodNotAllowed,
    Outdated,
    Refused,
    TimedOut,
    TooMany,
    TransactionAborted,
    Unauthorized,
    Unavailable,
)
from .resources.html_pages import Pages
from .wire.reply import Reply, preflight
from .wire.request import Request

_log = Logger()

_NOT_PAGES = {b"api", b"avatars", b"health", b"web"}
_NAMES_HTML = re.compile(r"(?:^|,)[ \t]*text/html[ \t]*(?:[;,]|$)", re.ASCII | re.IGNORECASE)

Presentation = Callable[[Request, Reply], Reply]


def error_reply(request: Request, failure: Failure) -> Reply:
    """Return the reply to a failed request. Internal errors are logged, and clients get no details of them."""
    error = failure.value
    if isinstance(error, Refused):
        return _refused(request, error)
    if isinstance(error, TimeoutError):
        return _refused(request, Unavailable())
    if not isinstance(error, CancelledError):  # a CancelledError only means that the client has gone
        _log_internal(request, failure)
    if isinstance(error, Declined | Outdated):  # nothing was stored, and a retry may reach a server that can store
        return _refused(request, Unavailable())
    return Reply.error("internal", "internal server error")


def _log_internal(request: Request, failure: Failure) -> None:
    fields = {
        "method": request.method.decode("ascii"),
        "path": request.path.decode("ascii", "backslashreplace"),
        "request_id": request.request_id,
    }
    # a failover fails dozens of requests this way, and their tracebacks wouldn't help
    if isinstance(failure.value, Interrupted | TransactionAborted | TimedOut | Declined):
        _log.error("{method} {path} failed ({request_id}): {error}", error=failure.value, **fields)
    else:
        _log.failure("{method} {path} failed ({request_id})", failure, LogLevel.critical, **fields)


def _refused(request: Request, error: Refused) -> Reply:
    headers = {}
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = methods = ", ".join(error.methods)
        asks = request.method == b"OPTIONS" and request.values(b"access-control-request-method")
        if asks and request.allowed_origin is not None:
            return preflight(methods)
    if isinstance(error, TooMany | Unavailable):
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, AccountSuspended) and error.until is not None:
        headers["Suspended-Until"] = str(msgspec.to_builtins(error.until.astimezone(UTC)))
    if isinstance(error, Unauthorized):
        # RFC 9110 §15.5.2, RFC 6750 §3
        headers["WWW-Authenticate"] = 'Bearer error="invalid_token"' if request.token_read else "Bearer"
    return Reply.error(error.code, str(error), headers)


def as_page(pages: Pages) -> Presentation:
    """Return a Presentation that shows an error as a page, if there is one and a browser asks for a page."""

    def present(request: Request, error: Reply) -> Reply:
        if request.method not in (b"GET", b"HEAD") or request.path[1:].partition(b"/")[0] in _NOT_PAGES:
            return error
        page = pages.error(error.status, error.headers.get("Retry-After"))
        if page is None or not _NAMES_HTML.search(request.field(b"accept") or ""):
            return error
        return msgspec.structs.replace(page, status=error.status, headers={**page.headers, **error.headers})

    return present


def as_json(_: Request, error: Reply) -> Reply:
    """Present errors as JSON, for services without pages."""
    return error
