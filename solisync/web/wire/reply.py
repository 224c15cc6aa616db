"""What goes out: the headers of every answer, and answers as bytes."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from time import time
from typing import NamedTuple
from uuid import uuid4

import msgspec
from twisted.web import http

from ...rules.shapes import ErrorBody
from .request import Request

JSON = "application/json"
EXPOSED_HEADERS = "Retry-After, X-Request-Id, ETag"
PREFLIGHT_HEADERS = "Authorization, Content-Type, If-None-Match"
PREFLIGHT_SECONDS = 600
NO_STORE = {"Cache-Control": "no-store"}

_encode = msgspec.json.Encoder().encode
_REASONS = {code: reason.decode("ascii") for code, reason in http.RESPONSES.items()} | {
    429: "Too Many Requests",  # these two Twisted does not know
    431: "Request Header Fields Too Large",
}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is more than a shape with status 200."""

    status: int = 200
    body: bytes = b""
    content_type: str | None = JSON
    headers: Mapping[str, str] = {}

    @classmethod
    def of(cls, shape: msgspec.Struct | Sequence[msgspec.Struct]) -> "Reply":
        """A shape, or a list of them, as JSON."""
        return cls(body=_encode(shape))

    def with_headers(self, headers: Mapping[str, str]) -> "Reply":
        """The same answer with these headers as well."""
        return msgspec.structs.replace(self, headers={**self.headers, **headers})

    @classmethod
    def error(cls, status: int, message: str, headers: Mapping[str, str] | None = None) -> "Reply":
        """An error, as every client reads it; none is worth keeping, and some are nobody else's business."""
        return cls(status=status, body=_encode(ErrorBody(message)), headers={**NO_STORE, **(headers or {})})

    def send(self, request: Request) -> bytes:
        """Make this the answer to `request`; returns the body for klein to write."""
        request.code = self.status
        headers = _headers(request, self)
        if request.private and "Cache-Control" not in self.headers:
            headers += NO_STORE.items()
        if request.is_last:
            headers.append(("Connection", "close"))
        request.head = _head(self.status, headers)
        return self.body


class Refusal(NamedTuple):
    """What a connection is told that ends with it, before or in the middle of a request."""

    status: int
    message: str


def encode_refusal(request: Request | None, refusal: Refusal, *, head_only: bool) -> bytes:
    """A whole response; `request` is as much as there is of the request."""
    reply = Reply.error(*refusal, {"Connection": "close"})
    return _head(reply.status, _headers(request, reply)) + (b"" if head_only else reply.body)


def preflight(methods: str) -> Reply:
    """The answer to a CORS preflight of a path that has these methods (Fetch standard §3.2.2)."""
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


def allowed_origin(request: Request) -> str | None:
    """The request's Origin when it is one that the settings name."""
    origins = request.fields(b"Origin")
    return origins[0] if len(origins) == 1 and origins[0] in request.site.cors_origins else None


def _headers(request: Request | None, reply: Reply) -> list[tuple[str, str]]:
    headers = [("X-Request-Id", uuid4().hex if request is None else request.request_id), *reply.headers.items()]
    if reply.content_type is not None:
        headers += [("Content-Type", reply.content_type), ("Content-Length", str(len(reply.body)))]
    if request is not None and request.site.cors_origins:
        headers.append(("Vary", "Origin"))
        origin = allowed_origin(request)
        if origin is not None:
            headers += [("Access-Control-Allow-Origin", origin), ("Access-Control-Expose-Headers", EXPOSED_HEADERS)]
    return headers


def _head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    always = f"Server: solisync\r\nDate: {_date(int(time()))}\r\nX-Content-Type-Options: nosniff\r\n"
    fields = "".join([f"{name}: {value}\r\n" for name, value in headers])
    return f"HTTP/1.1 {status} {_REASONS[status]}\r\n{always}{fields}\r\n".encode("ascii")


@lru_cache(1)
def _date(second: int) -> str:
    return str(http.datetimeToString(second), "ascii")
