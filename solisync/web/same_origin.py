"""The guard of the routes that read the cookie: docs/security.md "Logins of browsers"."""

from ..errors import Forbidden
from ..rules.browser_sessions import COOKIE, SessionCookie, is_same_origin, is_secure
from ..rules.sessions import REFRESH_LIFETIME
from .wire.request import Request


def check_same_origin(request: Request) -> None:
    """Raise Forbidden unless a page of this service has sent the request."""
    if not is_same_origin(
        content_types=request.fields(b"content-type"),
        hosts=request.fields(b"host"),
        origins=request.fields(b"origin"),
        fetch_sites=request.fields(b"sec-fetch-site"),
    ):
        raise Forbidden


def session_cookie(request: Request) -> SessionCookie:
    """The cookie that came with a request of such a page."""
    return SessionCookie.read(
        COOKIE, REFRESH_LIFETIME, request.fields(b"cookie"), secure=is_secure(request.fields(b"origin"))
    )
