"""Replies, the errors that end a connection, and their encoding as HTTP/1.1 responses (RFC 9112 §4)."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from time import time

import msgspec

from ...errors import STATUS, Code, Refused
from ...rules.shapes import ErrorBody
from .streaming import StreamBody

JSON = "application/json"
PREFLIGHT_HEADERS = "Authorization, Content-Type, If-None-Match, X-Request-Id"
PREFLIGHT_SECONDS = 600
NO_STORE = {"Cache-Control": "no-store"}
RETRY_SECONDS = 1

_encode = msgspec.json.Encoder().encode
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_TAG = re.compile(r'(?:W/)?("[^"]*")')  # a tag may contain commas


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply of any status; a reply without a body has no `content_type`.

    `pieces` make up the body, if given; each is generated when the client has taken the previous one. A reply with a
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
        """Whether the length of the body is unknown."""
        return self.pieces is not None or self.stream is not None

    @classmethod
    def of(cls, shape: msgspec.Struct | Sequence[msgspec.Struct]) -> "Reply":
        """Return a message shape, or a list of them, as JSON with status 200."""
        return cls(body=_encode(shape))

    @classmethod
    def not_modified(cls, headers: Mapping[str, str]) -> "Reply":
        """Return the reply 304, for a client that already has the body (RFC 9110 §15.4.5)."""
        return cls(status=304, content_type=None, headers=headers)

    @classmethod
    def error(cls, code: Code, message: str, headers: Mapping[str, str] | None = None) -> "Reply":
        """Return an error as JSON. Caches must not keep it, because it is temporary or concerns one client."""
        return cls(
            status=STATUS[code],
            body=_encode(ErrorBody(message)),
            headers={**NO_STORE, "Error-Code": code, **(headers or {})},
        )

    def with_headers(self, headers: Mapping[str, str]) -> "Reply":
        """Return the same reply with additional headers."""
        return msgspec.structs.replace(self, headers={**self.headers, **headers})


def preflight(methods: str) -> Reply:
    """Return the reply to a CORS preflight for a path with these methods (Fetch standard §3.2.2)."""
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
    """Return the status line and the headers of `reply`; `more` are headers that depend on the request."""
    fields = [("X-Request-Id", request_id), *reply.headers.items()]
    if reply.content_type is not None:
        fields.append(("Content-Type", reply.content_type))
        if not reply.endless:
            fields.append(("Content-Length", str(len(reply.body))))
    fields += more
    # Fast path: replaces Twisted's Headers and writeHeaders, 110,000 instructions, see docs/performance.md
    always = f"Server: solisync\r\nDate: {_date(int(time()))}\r\nX-Content-Type-Options: nosniff\r\n"
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
    return f"HTTP/1.1 {reply.status} {_REASONS[reply.status]}\r\n{always}{lines}\r\n".encode("ascii")


@lru_cache(1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


class Abandoned(Refused):
    """A request that the service stops reading: the connection is closed after this error."""

    def reply(self) -> Reply:
        """Return the error as the last reply of a connection."""
        status, headers = STATUS[self.code], {"Connection": "close"}
        if status == 503:
            headers["Retry-After"] = str(RETRY_SECONDS)
        elif status == 415:
            headers["Accept-Encoding"] = "identity"  # RFC 9110 §15.5.16
        return Reply.error(self.code, str(self), headers)


# Each makes a new exception: one that is raised again would keep the frames of both places.
BAD_REQUEST = partial(Abandoned, "bad_request", "bad request")
TIMED_OUT = partial(Abandoned, "request_timeout", "request timed out")
HEADER_TOO_LARGE = partial(Abandoned, "header_too_large", "request header too large")
BODY_TOO_LARGE = partial(Abandoned, "body_too_large", "request body must be at most 1 MB")
BODY_COMPRESSED = partial(Abandoned, "content_encoding", "request body must not be compressed")
UNKNOWN_CODING = partial(Abandoned, "transfer_encoding", "transfer coding not supported")
OUT_OF_MEMORY = partial(Abandoned, "unavailable", "service unavailable")


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether If-None-Match is `*` or contains `etag`, a strong entity tag with its quotes; then the status is 304.

    The comparison is weak (RFC 9110 §13.1.2), so that a cache also gets 304 if it compressed a reply and weakened its
    tag.
    """
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag in _TAG.findall(if_none_match)
