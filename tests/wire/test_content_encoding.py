"""Compressed bodies, which the service doesn't decode (docs/protocol.md "Common to all routes")."""

import json

import pytest

from solisync.rules.shapes import MAX_BODY
from tests.harness.constants import PASSWORD
from tests.harness.http_requests import new_address
from tests.wire.cases import LAST, ORIGIN
from tests.wire.sockets import post

LOGIN = json.dumps({"username": "nobody", "password": PASSWORD}).encode()
COMPRESSED = "request body must not be compressed"


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "compress", "br", "zstd", "GZip", "gzip, identity"])
async def test_compressed_body_is_refused_before_it_is_sent(talk, coding):
    """The head is enough for a 415 that says what is accepted, also where the client waits for 100."""
    for framing in ("Content-Length: 100", "Transfer-Encoding: chunked", "Content-Length: 9\r\nExpect: 100-continue"):
        (answer,) = await talk(post("/api/auth/login", f"{framing}\r\nContent-Encoding: {coding}\r\n"))
        assert (answer.status, answer.error, answer.headers["error-code"]) == (415, COMPRESSED, "content_encoding")
        assert answer.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("lines", [["identity", "br"], ["aws-chunked,\tgzip"], ["gzip,,"]])
async def test_any_coding_of_a_list_that_compresses_counts(talk, lines):
    """A list may have several lines, and empty elements."""
    fields = "".join(f"Content-Encoding: {line}\r\n" for line in lines)
    (answer,) = await talk(post("/api/auth/login", f"Content-Length: 9\r\n{fields}"))
    assert answer.status == 415


@pytest.mark.parametrize("coding", ["identity", "Identity, identity", "", "utf-8", "aws-chunked", "gzip2", '"gzip"'])
async def test_other_codings_are_ignored(ask, coding):
    """Some clients send an encoding of characters by mistake."""
    headers = {"Content-Encoding": coding, "X-Forwarded-For": new_address()}
    answer = await ask("POST", "/api/auth/login", headers, LOGIN)
    assert answer.status == 401


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/api/sync/push", {"Content-Length": MAX_BODY + 1}, 413),
        ("POST", "/api/sync/push", {"Authorization": "Bearer x"}, 415),
        ("PUT", "/api/me/avatar", {}, 415),
        ("DELETE", "/api/account", {}, 415),
        ("GET", "/health", {}, 415),
        ("GET", "/health", {"Content-Length": None}, 200),
        ("POST", "/api/session", {"Origin": "https://evil.example"}, 415),
        ("POST", "/nope", {}, 404),
        ("PUT", "/health", {}, 405),
    ],
)
async def test_compressed_body_is_refused_after_the_size_and_before_all_else(ask, method, path, headers, status):
    """An unknown path or method has its own error; a request without a body has no compressed one."""
    body = b"" if "Content-Length" in headers else b"x"
    answer = await ask(method, path, {"Content-Encoding": "gzip", **headers}, body)
    assert answer.status == status


async def test_allowed_origin_may_read_that_its_body_is_compressed(talk, cors):
    """The next request on the connection isn't read."""
    fields = f"Content-Length: 1\r\nContent-Encoding: gzip\r\nOrigin: {ORIGIN}\r\n"
    (answer,) = await talk(post("/api/auth/login", fields) + b"x" + LAST, port=cors.port)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (415, ORIGIN)
    assert answer.headers["connection"] == "close"
