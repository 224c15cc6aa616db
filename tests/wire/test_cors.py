"""Which browser clients may read answers, and preflights (docs/protocol.md "Common to all routes")."""

import pytest

from tests.harness.http_requests import new_address
from tests.wire.bench import Bench
from tests.wire.cases import ANSWERS, LAST, ORIGIN
from tests.wire.sockets import parse


@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - {"malformed"}))
async def test_an_allowed_origin_may_read_every_answer(talk, cors, name):
    """A configured origin is named in errors and refusals too; another one gets nothing; both vary."""
    first, rest = ANSWERS[name].split(b"\r\n", 1)
    for origin in (ORIGIN, "https://evil.example", ORIGIN.upper(), "null", "\xff"):
        field = f"\r\nOrigin: {origin}\r\n".encode("latin-1")
        answer, *_ = await talk(first + field + rest + LAST, port=cors.port)
        allowed = {name: value for name, value in answer.headers.items() if name.startswith("access-control")}
        expected = {
            "access-control-allow-origin": ORIGIN,
            "access-control-expose-headers": "Retry-After, X-Request-Id, ETag",
        }
        assert allowed == (expected if origin == ORIGIN else {})
        assert answer.headers["vary"] == "Origin"


def test_an_allowed_origin_may_read_a_timeout():
    """Also of a request that never ended."""
    bench = Bench(cors_origins=frozenset([ORIGIN]))
    channel, transport = bench.connect(f"GET / HTTP/1.1\r\nHost: a\r\nOrigin: {ORIGIN}\r\nX: y\r\n".encode())
    bench.clock.advance(10)
    (answer,) = parse(transport.value())
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (408, ORIGIN)
    bench.disconnect(channel)


@pytest.mark.parametrize(
    ("path", "methods"), [("/api/me", "GET, HEAD"), ("/api/account", "DELETE"), ("/api/auth/login", "POST")]
)
async def test_a_preflight_needs_neither_token_nor_patience(ask, cors, path, methods):
    """A known path answers any number of preflights with its methods."""
    address = new_address()
    for _ in range(12):
        answer = await ask(
            "OPTIONS",
            path,
            {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "X-Forwarded-For": address},
            port=cors.port,
        )
        assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["access-control-allow-methods"] == methods
    assert answer.headers["access-control-allow-headers"] == "Authorization, Content-Type, If-None-Match"
    assert answer.headers["access-control-max-age"] == "600"
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers
    assert "content-length" not in answer.headers


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/nope", {"Origin": ORIGIN, "Access-Control-Request-Method": "GET"}, 404),
        ("/health", {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}, 405),
        ("/health", {"Access-Control-Request-Method": "GET"}, 405),
        ("/health", {"Origin": ORIGIN}, 405),
    ],
)
async def test_what_is_no_preflight_is_refused_like_anything_else(ask, cors, path, headers, status):
    """An unknown path, an unlisted origin, or OPTIONS that asks for nothing."""
    answer = await ask("OPTIONS", path, headers, port=cors.port)
    assert answer.status == status
    assert "access-control-allow-methods" not in answer.headers
