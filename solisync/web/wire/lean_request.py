"""Twisted's request without the parts that this service never uses."""

from collections.abc import Callable
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

from twisted.python.failure import Failure
from twisted.web import server
from twisted.web.http_headers import Headers

from ...errors import BadRequest

PARAMETERS_MAX = 20


class LeanRequest(server.Request):
    """A request that creates its header and cookie objects only on use, by klein or by Twisted's parsing of heads.

    Fast path: replaces the setup, parsing and cleanup of http.Request, 20,000 instructions, see docs/performance.md.
    `given` has the fields of a head that this service has parsed itself, by their names in lower case. `on_gone` is
    called if the connection is lost before the reply is finished; it replaces `notifyFinish`.
    """

    channel: Any  # a solisync.web.wire.channel.Channel; None once the client has gone
    queued = False
    content = None
    given: dict[bytes, list[bytes]] | None = None
    _parameters: dict[str, list[str]] | None = None  # of the query, once parsed
    on_gone: Callable[[], None] | None = None

    def __init__(self, channel: Any) -> None:  # without super(), see the fast path above
        self.channel = channel
        self.client, self.host = channel.getPeer(), channel.getHost()
        self.notifications = []
        self._adapterCache = {}

    @cached_property
    def requestHeaders(self) -> Headers:  # type: ignore[override]
        headers = Headers()
        for name, values in (self.given or {}).items():
            headers.setRawHeaders(name, values)
        return headers

    @cached_property
    def responseHeaders(self) -> Headers:  # type: ignore[override]
        return Headers()

    @cached_property
    def received_cookies(self) -> dict[bytes, bytes]:  # type: ignore[override]
        return {}

    @cached_property
    def cookies(self) -> list[bytes]:  # type: ignore[override]
        return []

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of a header field, one for each line; `name` is in lower case."""
        if self.given is None:
            return list(self.requestHeaders.getRawHeaders(name, []))
        return self.given.get(name, [])

    def fields(self, name: bytes) -> list[str]:
        """Return the values of a header field as text, one for each line; a value may have any byte (RFC 9110 §5.5).

        `name` is in lower case. Twisted's getHeader raises UnicodeDecodeError for values that are not UTF-8.
        """
        values = self.values(name)
        return [value.decode("latin-1") for value in values] if values else []

    def field(self, name: bytes) -> str | None:
        """Return the value of a header field, or None if it is absent. Several lines make one list (RFC 9110 §5.3)."""
        return ", ".join(self.fields(name)) or None

    def check_query(self) -> None:
        """Raise BadRequest if the query has more than PARAMETERS_MAX parameters, before any of them is read."""
        if self._query_text.count(b"&") >= PARAMETERS_MAX:
            raise BadRequest("bad_query", f"query may have at most {PARAMETERS_MAX} parameters")

    def query(self, name: str) -> list[str]:
        """Return the values of a query parameter, one for each occurrence; the value may be empty.

        Only "&" separates parameters. Twisted's `args` also split at ";", and lack parameters without a value.
        Raises BadRequest for a query that isn't UTF-8.
        """
        if self._parameters is None:
            self._parameters = self._read_query()
        return self._parameters.get(name, [])

    @property
    def _query_text(self) -> bytes:
        return self.uri.partition(b"?")[2]

    def _read_query(self) -> dict[str, list[str]]:
        parameters: dict[str, list[str]] = {}
        try:
            pairs = parse_qsl(self._query_text.decode("ascii"), keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            raise BadRequest("bad_query", "query must be UTF-8") from None
        for name, value in pairs:
            parameters.setdefault(name, []).append(value)
        return parameters

    def connectionLost(self, reason: Failure) -> None:
        super().connectionLost(reason)
        if self.on_gone is not None:
            self.on_gone()

    def finish(self) -> None:
        if self._disconnected or self.finished or not self.startedWriting or self.producer:
            super().finish()
            return
        self.finished = 1
        self.on_gone = None
        self.channel.requestDone(self)
        del self.channel
        for waiting in self.notifications:
            waiting.callback(None)
        self.notifications = []
