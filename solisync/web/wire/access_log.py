"""The log lines and metrics of requests."""

from collections.abc import Callable

from twisted.logger import Logger

from ...process.logs import quick_info
from ...process.metrics import Metrics

PATH_BYTES = 256  # longer than any route; a pipe keeps lines of several workers intact up to 4,096 bytes

ORIGIN_CHARACTERS = 128
ORIGIN_SECONDS = 60.0

_log = Logger()


class AccessLog:
    """Counts each reply and each refused connection, and writes a line for each unless `lines` is False.

    Nothing that may be secret is logged: no query string, no body, and no header except X-Request-Id.
    """

    def __init__(self, *, metrics: Metrics, seconds: Callable[[], float], lines: bool = True) -> None:
        self._metrics = metrics
        self._seconds = seconds
        self._lines = lines
        self._warned = False
        self._next_origin_warning = float("-inf")

    def answered(
        self,
        *,
        client: str,
        user_id: str | None,
        admin: str | None,
        method: bytes,
        path: bytes,
        route: str,
        status: int,
        seconds: float,
        streamed: bool,
        request_id: str,
    ) -> None:
        """Count and log a reply. `route` is the template of the path, empty if the request had no route.

        The metrics leave out the time of a `streamed` reply, because it depends on the client.
        """
        verb = method.decode("ascii")
        self._metrics.answered(verb if route else "", route, status, None if streamed else seconds)
        if not self._lines:
            return
        shown = path[:PATH_BYTES].decode("ascii", "backslashreplace")
        milliseconds = round(seconds * 1000, 1)
        quick_info(
            _log,
            "{line}",
            line=f"{client}{f' admin:{admin}' if admin else ''} {verb} {shown} {status} {milliseconds} ms {request_id}",
            client=client,
            user_id=user_id,
            admin=admin,
            method=verb,
            route=route or None,
            path=shown,
            status=status,
            milliseconds=milliseconds,
            request_id=request_id,
        )

    def refused(self, status: int, message: str, *, client: str, request_id: str) -> None:
        """Count and log a refused connection."""
        self._metrics.requests.labels("", "", status).inc()
        if not self._lines:
            return
        _log.info(
            "{client} refused: {status} {message} {request_id}",
            client=client,
            request_id=request_id,
            status=status,
            message=message,
        )

    def warn_of_untrusted_proxy(self, peer: str | None) -> None:
        """Warn, once per process, that X-Forwarded-For came from a peer that isn't a trusted proxy."""
        if not self._warned:
            self._warned = True
            _log.warn(
                "ignoring X-Forwarded-For from {peer}, which is not in SOLISYNC_TRUSTED_PROXIES;"
                " if it is your proxy, every player behind it shares one rate limit until you list it there",
                peer=peer,
            )

    def warn_of_unlisted_origin(self, origin: str) -> None:
        """Warn, at most once a minute, that a page of an origin that isn't configured has sent a request."""
        now = self._seconds()
        if now >= self._next_origin_warning:
            self._next_origin_warning = now + ORIGIN_SECONDS
            _log.warn(
                "origin {origin} is not in SOLISYNC_CORS_ORIGINS, so browsers keep answers from its pages",
                origin=origin[:ORIGIN_CHARACTERS].encode("ascii", "backslashreplace").decode("ascii"),
            )
