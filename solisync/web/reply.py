"""What goes out: the headers of every answer, and answers as bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import uuid4

import msgspec
from twisted.web import http

from ..rules.shapes import ErrorBody
from .request import Request

JSON = "application/json"
EXPOSED_HEADERS = "Retry-After, X-Request-Id, ETag"
PREFLIGHT_HEADERS = "Authorization, Content-Type, If-None-Match"
PREFLIGHT_SECONDS = 600
NO_STORE = {"Cache-Control": "no-store"}
REASONS = {429: b"Too Many Requests", 431: b"Request Header Fields Too Large"}  # which Twisted does not know

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer that is more than a shape with status 200."""

    status: int = 200
    body: bytes = b""
    content_type: str | None = JSON
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, shape: msgspec.Struct | Sequence[msgspec.Struct]) -> "Reply":
        """A shape, or a list of them, as JSON."""
        return cls(body=_encode(shape))

    def with_headers(self, headers: Mapping[str, str]) -> "Reply":
        """The same answer with these headers as well."""
        return replace(self, headers={**self.headers, **headers})

    @classmethod
    def error(cls, status: int, message: str, headers: Mapping[str, str] | None = None) -> "Reply":
        """An error, as every client reads it; none is worth keeping, and some are nobody else's business."""
        return cls(status=status, body=_encode(ErrorBody(message)), headers={**NO_STORE, **(headers or {})})

    def send(self, request: Request) -> bytes:
        """Set the status and all headers on `request`; returns the body for klein to write."""
        request.setResponseCode(self.status, REASONS.get(self.status))
        for name, value in _headers(request, self):
            request.setHeader(name, value)
        return self.body


class Refusal(NamedTuple):
    """What a connection is told that ends with it, before or in the middle of a request."""

    status: int
    message: str


def encode_refusal(request: Request | None, refusal: Refusal, *, head_only: bool) -> bytes:
    """A whole response; `request` is as much as there is of the request."""
    reason = (REASONS.get(refusal.status) or http.RESPONSES[refusal.status]).decode("ascii")
    reply = Reply.error(*refusal, {"Date": http.datetimeToString().decode("ascii"), "Connection": "close"})
    lines = [f"HTTP/1.1 {refusal.status} {reason}"]
    lines += [f"{name}: {value}" for name, value in _headers(request, reply)]
    return "\r\n".join([*lines, "\r\n"]).encode("ascii") + (b"" if head_only else reply.body)


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
    origins = request.fields("Origin")
    return origins[0] if len(origins) == 1 and origins[0] in request.site.cors_origins else None


def _headers(request: Request | None, reply: Reply) -> list[tuple[str, str]]:
    headers = [
        ("Server", "solisync"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Request-Id", uuid4().hex if request is None else request.request_id),
        *reply.headers.items(),
    ]
    if reply.content_type is not None:
        headers += [("Content-Type", reply.content_type), ("Content-Length", str(len(reply.body)))]
    if request is not None and request.site.cors_origins:
        headers.append(("Vary", "Origin"))
        origin = allowed_origin(request)
        if origin is not None:
            headers += [("Access-Control-Allow-Origin", origin), ("Access-Control-Expose-Headers", EXPOSED_HEADERS)]
    return headers
