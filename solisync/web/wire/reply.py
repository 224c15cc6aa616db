"""Replies, the errors that end a connection, and their encoding as HTTP/1.1 responses (RFC 9112 §4)."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import lru_cache
from time import time
from typing import NamedTuple

import msgspec
from twisted.web import http

from ...errors import STATUS, Code
from ...rules.shapes import ErrorBody
from .streaming import StreamBody

JSON = "application/json"
PREFLIGHT_HEADERS = "Authorization, Content-Type, If-None-Match, X-Request-Id"
PREFLIGHT_SECONDS = 600
NO_STORE = {"Cache-Control": "no-store"}
RETRY_SECONDS = 1

_encode = msgspec.json.Encoder().encode
_REASONS = {code: reason.decode("ascii") for code, reason in http.RESPONSES.items()} | {
    429: "Too Many Requests",  # Twisted does not know these two
    431: "Request Header Fields Too Large",
}
_TAG = re.compile(r'(?:W/)?("[^"]*")')  # commas may stand inside of one


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply of any status; `content_type` is None for one without a body.

    A reply with `pieces` has these as its body: each is asked for when the client has taken the one before. One with a
    `stream` never ends by itself.
    """

    status: int = 200
    body: bytes = b""
    pieces: AsyncGenerator[bytes, None] | None = None
    stream: StreamBody | None = None
    content_type: str | None = JSON
    headers: Mapping[str, str] = {}

    @property
    def endless(self) -> bool:
        """Whether the length of the body is not known."""
        return self.pieces is not None or self.stream is not None

    @classmethod
    def of(cls, shape: msgspec.Struct | Sequence[msgspec.Struct]) -> "Reply":
        """A message shape, or a list of them, as JSON with status 200."""
        return cls(body=_encode(shape))

    @classmethod
    def not_modified(cls, headers: Mapping[str, str]) -> "Reply":
        """The reply for a client that has the body already (RFC 9110 §15.4.5)."""
        return cls(status=304, content_type=None, headers=headers)

    @classmethod
    def error(cls, code: Code, message: str, headers: Mapping[str, str] | None = None) -> "Reply":
        """An error as JSON. Caches must not keep it: it is temporary, or concerns one client."""
        return cls(
            status=STATUS[code],
            body=_encode(ErrorBody(message)),
            headers={**NO_STORE, "Error-Code": code, **(headers or {})},
        )

    def with_headers(self, headers: Mapping[str, str]) -> "Reply":
        """The same reply with these headers as well."""
        return msgspec.structs.replace(self, headers={**self.headers, **headers})


def preflight(methods: str) -> Reply:
    """The reply to a CORS preflight for a path with these methods (Fetch standard §3.2.2)."""
    return Reply(
        status=204,
        content_type=None,
        headers={
            **NO_STORE,
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": PREFLIGHT_HEADERS,
            "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
        },
    )


def encode_head(reply: Reply, request_id: str, more: Iterable[tuple[str, str]]) -> bytes:
    """The status line and the headers of `reply`; `more` are the headers that depend on the request."""
    fields = [("X-Request-Id", request_id), *reply.headers.items()]
    if reply.content_type is not None:
        fields.append(("Content-Type", reply.content_type))
        if not reply.endless:
            fields.append(("Content-Length", str(len(reply.body))))
    fields += more
    # Fast path: Twisted's Headers and writeHeaders, 110,000 instructions, see docs/performance.md
    always = f"Server: solisync\r\nDate: {_date(int(time()))}\r\nX-Content-Type-Options: nosniff\r\n"
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
    return f"HTTP/1.1 {reply.status} {_REASONS[reply.status]}\r\n{always}{lines}\r\n".encode("ascii")


@lru_cache(1)
def _date(second: int) -> str:
    return str(http.datetimeToString(second), "ascii")


class Refusal(NamedTuple):
    """An error after which the connection is closed, because the rest of the request is not read."""

    code: Code
    message: str

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.code]

    def reply(self) -> Reply:
        """The error as the last reply of a connection."""
        headers = {"Connection": "close"}
        if self.status == 503:
            headers["Retry-After"] = str(RETRY_SECONDS)
        return Reply.error(*self, headers)


BAD_REQUEST = Refusal("bad_request", "bad request")
TIMED_OUT = Refusal("request_timeout", "request timed out")
HEADER_TOO_LARGE = Refusal("header_too_large", "request header too large")
BODY_TOO_LARGE = Refusal("body_too_large", "request body must be at most 1 MB")
OUT_OF_MEMORY = Refusal("unavailable", "service unavailable")


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether the status is 304: If-None-Match is `*` or contains `etag`, a strong entity tag with its quotes.

    The comparison is weak (RFC 9110 §13.1.2): a cache that compressed a reply, and weakened its tag for that, also
    gets a 304.
    """
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag in _TAG.findall(if_none_match)
