"""Twisted's request, without what this service never reads."""

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from twisted.python.failure import Failure
from twisted.web import server
from twisted.web.http_headers import Headers

from ...errors import BadRequest

PARAMETERS_MAX = 20


class LeanRequest(server.Request):
    """A request that makes headers and cookies only for who asks for them: klein, and Twisted's reading of heads.

    Fast path: replaces what http.Request sets up, parses and cleans up for each request, 20,000 instructions, see
    docs/performance.md. `given` are the fields of a head that Twisted has not read, by their names in lower case.
    `on_gone` is called when the connection is lost before the reply is finished; it replaces `notifyFinish`.
    """

    channel: Any  # a solisync.web.wire.channel.Channel; None once the client has gone
    queued = False
    content = None
    given: dict[bytes, list[bytes]] | None = None
    _parameters: Mapping[str, list[str]] = MappingProxyType({})
    on_gone: Callable[[], None] | None = None

    def __init__(self, channel: Any) -> None:  # without super(): see above
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
        """The values of a header field, one for each line; `name` is in lower case."""
        if self.given is None:
            return list(self.requestHeaders.getRawHeaders(name, []))
        return self.given.get(name, [])

    def fields(self, name: bytes) -> list[str]:
        """The values of a header field, one for each line; any byte may occur in a value (RFC 9110 §5.5).

        `name` is in lower case. Twisted's getHeader raises UnicodeDecodeError for values that are not UTF-8.
        """
        return [value.decode("latin-1") for value in self.values(name)]

    def field(self, name: bytes) -> str | None:
        """The value of a header field, None when it is absent. Several lines make one list (RFC 9110 §5.3)."""
        return ", ".join(self.fields(name)) or None

    def read_query(self) -> None:
        """Parse the query; raises BadRequest unless it is UTF-8, and has at most PARAMETERS_MAX parameters.

        Only "&" separates parameters; Twisted's `args` are split at ";" as well, and lack those without a value.
        """
        query = self.uri.partition(b"?")[2].decode("ascii")
        try:
            pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX)
        except ValueError:
            raise BadRequest("bad_query", f"query must be UTF-8, with at most {PARAMETERS_MAX} parameters") from None
        self._parameters = {}
        for name, value in pairs:
            self._parameters.setdefault(name, []).append(value)

    def query(self, name: str) -> list[str]:
        """The values of a parameter of the query that was read, one for each time it is given: "" if it has none."""
        return self._parameters.get(name, [])

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
