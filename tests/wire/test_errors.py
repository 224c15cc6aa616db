"""Errors: unknown paths, wrong methods and internal failures (docs/protocol.md "Common to all routes")."""

import pytest

from tests.wire.sockets import parse


@pytest.mark.parametrize(
    "path",
    [
        "/nope", "/api", "/api/health/", "//health", "//api//health", "/api//health", "/api/./health",
        "/api/x/../health", "/%68ealth", "/api%2Fhealth", "/health%00", "/health%20", "/%ff", "/%zz", "/%", "/%2e",
        "/HEALTH", "/health;a=b", "/api/auth/nope", "*", "http://a//health", "http://a//", "//",
    ],
)  # fmt: skip
async def test_unknown_path_is_not_found(ask, path):
    """A path must be spelled exactly, whatever the method is."""
    for method in ("GET", "POST", "OPTIONS", "DELETE", "get"):
        answer = await ask(method, path)
        assert (method, answer.status, answer.error) == (method, 404, "not found")


async def test_empty_path_is_the_root(ask):
    """RFC 9110 §4.2.3 allows it where the request target is a whole URI."""
    assert (await ask("GET", "http://a")).status == (await ask("GET", "/")).status == 200
    assert (await ask("POST", "http://a?x")).headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/api/me", "GET, HEAD"),
        ("get", "/api/me", "GET, HEAD"),
        ("Get", "/health", "GET, HEAD"),
        ("OPTIONS", "/api/account", "DELETE"),
        ("HEAD", "/api/account", "DELETE"),
        ("TRACE", "/health", "GET, HEAD"),
        ("X!#$%&'*+-.^_`|~1", "/health", "GET, HEAD"),
    ],
)
async def test_wrong_method_gets_405(ask, method, path, allow):
    """The method may differ only in case. The answer lists the methods of the path."""
    answer = await ask(method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert method == "HEAD" or answer.error == "method not allowed"


async def test_internal_failure_is_a_500_without_details(bench, warnings, no_lost_failures):
    """The details are in the log."""
    _, transport = bench.connect(b"GET /broken HTTP/1.1\r\nHost: a\r\n\r\n")
    (answer,) = parse(transport.value())
    assert (answer.status, answer.error) == (500, "internal server error")
    assert "TwistedWeb" not in answer.headers["server"]
    assert len([event for event in warnings if event.get("log_failure")]) == 1
    warnings.clear()
    no_lost_failures.clear()
