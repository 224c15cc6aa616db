"""CORS: browser clients that may read answers, and preflights (docs/protocol.md "Common to all routes")."""

import pytest
from twisted.logger import formatEvent

from tests.harness.http_requests import new_address
from tests.wire.bench import Bench
from tests.wire.cases import ANSWERS, LAST, ORIGIN
from tests.wire.sockets import parse

EXPOSED = "Retry-After, X-Request-Id, ETag, Error-Code, Content-Disposition, Suspended-Until, Date"


@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - {"malformed"}))
async def test_allowed_origin_may_read_every_answer(talk, cors, name):
    """A configured origin is named in errors and refusals too; another one never. Both answers vary by origin."""
    first, rest = ANSWERS[name].split(b"\r\n", 1)
    for origin in (ORIGIN, "https://evil.example", ORIGIN.upper(), "null", "\xff"):
        field = f"\r\nOrigin: {origin}\r\n".encode("latin-1")
        answer, *_ = await talk(first + field + rest + LAST, port=cors.port)
        allowed = {name: value for name, value in answer.headers.items() if name.startswith("access-control")}
        expected = {
            "access-control-allow-origin": ORIGIN,
            "access-control-expose-headers": EXPOSED,
        }
        assert allowed == (expected if origin == ORIGIN else {})
        assert answer.headers["vary"] == "Origin"


def test_allowed_origin_may_read_a_timeout():
    """The request never ended."""
    bench = Bench(cors_origins=frozenset([ORIGIN]))
    channel, transport = bench.connect(f"GET / HTTP/1.1\r\nHost: a\r\nOrigin: {ORIGIN}\r\nX: y\r\n".encode())
    bench.clock.advance(10)
    (answer,) = parse(transport.value())
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (408, ORIGIN)
    bench.disconnect(channel)


@pytest.mark.parametrize(
    ("path", "methods"), [("/api/me", "GET, HEAD"), ("/api/account", "DELETE"), ("/api/auth/login", "POST")]
)
async def test_preflight_needs_no_token_and_has_no_rate_limit(ask, cors, path, methods):
    """The answer has the methods of the path."""
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
    assert answer.headers["access-control-allow-headers"] == "Authorization, Content-Type, If-None-Match, X-Request-Id"
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
async def test_invalid_preflight_is_refused_like_other_requests(ask, cors, path, headers, status):
    """The path is unknown, the origin unlisted, or OPTIONS asks for nothing."""
    answer = await ask("OPTIONS", path, headers, port=cors.port)
    assert answer.status == status
    assert "access-control-allow-methods" not in answer.headers


def origin_warnings(warnings):
    return [formatEvent(event) for event in warnings if "SOLISYNC_CORS_ORIGINS" in event["log_format"]]


@pytest.mark.parametrize("configured", [[], [ORIGIN]], ids=["none listed", "another listed"])
def test_unlisted_origin_is_logged_once_a_minute(warnings, configured):
    """Preflights and other requests share the limit, and many origins don't make many lines."""
    bench = Bench(cors_origins=frozenset(configured))
    for seconds in (0, 0, 59.9, 0.1, 30):
        bench.clock.advance(seconds)
        for number in range(3):
            lines = b"Host: a\r\nOrigin: http://localhost:517%d\r\nConnection: close\r\n\r\n" % number
            channel, _ = bench.connect(b"GET /now HTTP/1.1\r\n" + lines)
            bench.disconnect(channel)
    line = "origin http://localhost:5170 is not in SOLISYNC_CORS_ORIGINS, so browsers keep answers from its pages"
    assert origin_warnings(warnings) == [line] * 2


@pytest.mark.parametrize(
    "lines",
    [
        f"Host: a\r\nOrigin: {ORIGIN}",
        "Host: a",
        "Host: Solisync.example:8080\r\nOrigin: https://solisync.Example:8080",
    ],
    ids=["listed", "none", "the service itself"],
)
def test_allowed_origins_are_not_logged(warnings, lines):
    """The origin is listed, absent, or the service's own: its pages send requests too."""
    bench = Bench(cors_origins=frozenset([ORIGIN]))
    channel, transport = bench.connect(f"GET /now HTTP/1.1\r\n{lines}\r\n\r\n".encode())
    assert transport.value().startswith(b"HTTP/1.1 200 ")
    assert origin_warnings(warnings) == []
    bench.disconnect(channel)


def test_logged_origin_is_short_and_escaped(warnings):
    """The log has at most 128 characters of it."""
    bench = Bench()
    origin = b"http://\xe9\xff{x}\t" + b"x" * 1000
    channel, _ = bench.connect(b"GET /now HTTP/1.1\r\nHost: a\r\nOrigin: " + origin + b"\r\n\r\n")
    (line,) = origin_warnings(warnings)
    assert line.startswith("origin http://\\xe9\\xff{x}\t" + "x" * 100)
    assert len(line) < 300
    bench.disconnect(channel)
