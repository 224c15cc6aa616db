"""The headers of every answer (docs/protocol.md "Common to all routes")."""

import pytest

from solisync.rules.shapes import MAX_BODY
from tests.harness.http_requests import new_address
from tests.wire.cases import ANSWERS, LAST


@pytest.mark.parametrize("path", ["/health", "/api/me", "/api/openapi.json", "/nope", "/api/auth/login"])
async def test_head_returns_the_headers_of_get(ask, path):
    """Content-Length is the same too."""
    headers = {"X-Request-Id": "same", "X-Forwarded-For": new_address()}
    get, head = await ask("GET", path, headers), await ask("HEAD", path, headers)
    del get.headers["date"], head.headers["date"]
    assert (head.status, head.headers, head.body) == (get.status, get.headers, b"")
    assert get.body


@pytest.mark.parametrize("request_bytes", ANSWERS.values(), ids=ANSWERS.keys())
async def test_every_answer_has_the_same_headers(talk, request_bytes):
    """Every answer has Server without a version, nosniff, a request id and a date. CORS headers need a setting."""
    answer, *_ = await talk(request_bytes + LAST)
    assert answer.headers["server"] == "solisync"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]
    assert answer.headers["date"].endswith("GMT")
    assert not [name for name in answer.headers if name.startswith("access-control") or name == "vary"]


@pytest.mark.parametrize("given", ["a", "A.b_c-9", "x" * 64])
async def test_valid_request_id_is_kept(ask, given):
    """A proxy's X-Request-Id comes back, even with errors and refusals."""
    for path, length in (("/health", 0), ("/nope", 0), ("/health", MAX_BODY + 1)):
        answer = await ask("GET", path, {"X-Request-Id": given, "Content-Length": length})
        assert answer.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a/b", "\xe9", "\xff\xfe", "a\r\nX-Request-Id: b"])
async def test_invalid_request_id_is_replaced(ask, given):
    """An id that could confuse a log, or two ids, are replaced."""
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
async def test_private_answers_are_not_cached(ask, server, method, path, body, status):
    """Everything authenticated or under /api/auth has no-store, even errors."""
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
async def test_www_authenticate_distinguishes_a_refused_token_from_none(ask, path, header, refused):
    """Any bytes return 401. `invalid_token` is added if the route reads tokens and there was one."""
    method, body = ("GET", b"") if path == "/api/me" else ("POST", b'{"refresh_token": "x"}')
    answer = await ask(method, path, {"Authorization": header, "X-Forwarded-For": new_address()}, body)
    assert (answer.status, answer.error) == (401, "unauthorized")
    challenge = 'Bearer error="invalid_token"' if refused and path == "/api/me" else "Bearer"
    assert answer.headers["www-authenticate"] == challenge
