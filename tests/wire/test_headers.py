"""The headers of every answer (docs/protocol.md "Common to all routes")."""

import pytest

from solisync.rules.shapes import MAX_BODY
from tests.harness.http_requests import new_address
from tests.wire.cases import ANSWERS, LAST


@pytest.mark.parametrize("path", ["/health", "/api/me", "/api/openapi.json", "/nope", "/api/auth/login"])
async def test_head_is_get_without_a_body(ask, path):
    """HEAD has GET's status and headers, Content-Length included."""
    headers = {"X-Request-Id": "same", "X-Forwarded-For": new_address()}
    get, head = await ask("GET", path, headers), await ask("HEAD", path, headers)
    del get.headers["date"], head.headers["date"]
    assert (head.status, head.headers, head.body) == (get.status, get.headers, b"")
    assert get.body


@pytest.mark.parametrize("request_bytes", ANSWERS.values(), ids=ANSWERS.keys())
async def test_every_answer_has_the_same_headers(talk, request_bytes):
    """Server without a version, nosniff, a request id, a date, and no word of CORS where it is not set up."""
    answer, *_ = await talk(request_bytes + LAST)
    assert answer.headers["server"] == "solisync"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]
    assert answer.headers["date"].endswith("GMT")
    assert not [name for name in answer.headers if name.startswith("access-control") or name == "vary"]


@pytest.mark.parametrize("given", ["a", "A.b_c-9", "x" * 64])
async def test_a_sane_request_id_is_kept(ask, given):
    """A proxy's X-Request-Id comes back, on errors and refusals too."""
    for path, length in (("/health", 0), ("/nope", 0), ("/health", MAX_BODY + 1)):
        answer = await ask("GET", path, {"X-Request-Id": given, "Content-Length": length})
        assert answer.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a/b", "\xe9", "\xff\xfe", "a\r\nX-Request-Id: b"])
async def test_another_request_id_is_replaced(ask, given):
    """What could confuse a log is replaced by an id of our own, and so are two."""
    answer = await ask("GET", "/health", {"X-Request-Id": given})
    assert len(answer.headers["x-request-id"]) == 32


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/auth/register", b'{"username": "bob", "password": "canary password"}', 200),
        ("POST", "/api/auth/login", b"{}", 400),
        ("POST", "/api/auth/login", b'{"username": "x", "password": "canary password"}', 401),
        ("GET", "/api/auth/login", b"", 405),
        ("POST", "/api/auth/nope", b"", 404),
        ("POST", "/api/auth/login", b"x" * (MAX_BODY + 1), 413),
        ("GET", "/api/me", b"", 401),
        ("DELETE", "/api/account", b"", 401),
    ],
)
async def test_no_cache_keeps_what_is_private(ask, server, method, path, body, status):
    """Everything authenticated or under /api/auth says no-store, errors included."""
    answer = await ask(method, path, {"X-Forwarded-For": new_address()}, body)
    assert (answer.status, answer.headers["cache-control"]) == (status, "no-store")


@pytest.mark.parametrize("path", ["/api/me", "/api/auth/refresh"])
@pytest.mark.parametrize(
    ("header", "refused"),
    [
        (None, False),
        ("Basic YTpi", False),
        ("\xe9", False),
        ("Bearer", False),
        ("Bearer \xff", True),
        ("Bearer a b", True),
        ("Bearer a, Bearer b", True),
        ("bearer a.b.c", True),
    ],
)
async def test_a_refused_token_is_told_from_none(ask, path, header, refused):
    """Whatever bytes the header holds, it is a 401, which says where there was a token that this route looks at."""
    method, body = ("GET", b"") if path == "/api/me" else ("POST", b'{"refresh_token": "x"}')
    answer = await ask(method, path, {"Authorization": header, "X-Forwarded-For": new_address()}, body)
    assert (answer.status, answer.error) == (401, "unauthorized")
    challenge = 'Bearer error="invalid_token"' if refused and path == "/api/me" else "Bearer"
    assert answer.headers["www-authenticate"] == challenge
