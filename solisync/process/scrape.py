"""The HTTP listener from which Prometheus fetches the metrics (docs/security.md "The listener for Prometheus").

It is separate from the API's listener, because it has no authentication.
"""

import json
from collections.abc import Callable
from io import BytesIO

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from twisted.web import http, server
from twisted.web.resource import Resource

from ..errors import Code

METHODS = (b"GET", b"HEAD")


def scrape_site(exposition: Callable[[], bytes]) -> server.Site:
    """Make the factory of connections for a listener that answers GET /metrics by `exposition`."""

    def make_request(channel: http.HTTPChannel, queued: bool = False) -> _Request:
        return _Request(channel, queued, exposition)

    return _Site(Resource(), requestFactory=make_request, parsePOSTFormSubmission=False)


class _Request(http.Request):
    """A request; its answer has none of the headers and pages of twisted.web's server, which name its version."""

    def __init__(self, channel: http.HTTPChannel, queued: object, exposition: Callable[[], bytes]) -> None:
        super().__init__(channel, queued, parsePOSTFormSubmission=False)
        self._exposition = exposition

    def gotLength(self, length: int | None) -> None:
        self.content = BytesIO()  # Twisted would create a file for a long body

    def handleContentChunk(self, data: bytes) -> None:
        self.loseConnection()  # a scrape has no body

    def process(self) -> None:
        """Answer with the metrics, or with an error in JSON as the API does."""
        if self.path != b"/metrics":
            self._answer_error(404, "not_found", "not found")
        elif self.method not in METHODS:
            self.setHeader("Allow", "GET, HEAD")
            self._answer_error(405, "method_not_allowed", "method not allowed")
        else:
            self._answer(CONTENT_TYPE_LATEST, self._exposition())

    def _answer_error(self, status: int, code: Code, message: str) -> None:
        self.setResponseCode(status)
        self.setHeader("Error-Code", code)
        self._answer("application/json", json.dumps({"error": message}).encode())

    def _answer(self, content_type: str, body: bytes) -> None:
        self.setHeader("Server", "solisync")
        self.setHeader("Content-Type", content_type)
        self.setHeader("Content-Length", str(len(body)))
        self.write(body)  # omits the body of an answer to HEAD
        self.finish()


class _Site(server.Site):
    noisy = False

    def logPrefix(self) -> str:
        return "Metrics"

    def log(self, request: http.Request) -> None:
        """Write no access log: Prometheus scrapes every few seconds."""
