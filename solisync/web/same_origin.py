"""The guard of the routes that read the cookie: docs/security.md "Logins of browsers"."""

from ..errors import Forbidden
from ..rules.browser_sessions import SessionCookie
from ..rules.same_origin import is_same_origin, is_secure
from .wire.request import Request


def session_cookie(request: Request) -> SessionCookie:
    """The cookie that came with the request of a page of this service; raises Forbidden for any other request."""
    origins = request.fields(b"origin")
    if not is_same_origin(
        content_types=request.fields(b"content-type"),
        hosts=request.fields(b"host"),
        origins=origins,
        fetch_sites=request.fields(b"sec-fetch-site"),
    ):
        raise Forbidden
    return SessionCookie.read(request.fields(b"cookie"), secure=is_secure(origins))
