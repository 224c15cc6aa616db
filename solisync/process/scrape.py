"""The HTTP listener from which Prometheus fetches the metrics (docs/security.md "The listener for Prometheus").

Apart from the service's own, because it authenticates nobody.
"""

from collections.abc import Callable
from io import BytesIO

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from twisted.web import server
from twisted.web.http import Request
from twisted.web.resource import Resource


def scrape_site(exposition: Callable[[], bytes]) -> server.Site:
    """The factory of connections for a listener that answers GET /metrics with what `exposition` returns."""
    root = Resource()
    root.putChild(b"metrics", _Exposition(exposition))
    return _Site(root, requestFactory=_Request, parsePOSTFormSubmission=False)


class _Request(server.Request):
    def gotLength(self, length: int | None) -> None:
        self.content = BytesIO()  # Twisted would make a file for a long body

    def handleContentChunk(self, data: bytes) -> None:
        self.loseConnection()  # a scrape has no body


class _Site(server.Site):
    noisy = False
    displayTracebacks = False

    def logPrefix(self) -> str:
        return "Metrics"

    def log(self, request: Request) -> None:
        """Write no access log: Prometheus scrapes every few seconds."""


class _Exposition(Resource):
    isLeaf = True

    def __init__(self, exposition: Callable[[], bytes]) -> None:
        super().__init__()
        self._exposition = exposition

    def render_GET(self, request: Request) -> bytes:
        request.setHeader("Content-Type", CONTENT_TYPE_LATEST)
        return self._exposition()
