"""What is not there, not allowed, or broken inside (docs/protocol.md "Common to all routes")."""

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
async def test_an_unknown_path_is_not_found(ask, path):
    """What is not spelled exactly like a path of ours is unknown, whatever the method."""
    for method in ("GET", "POST", "OPTIONS", "DELETE", "get"):
        answer = await ask(method, path)
        assert (method, answer.status, answer.error) == (method, 404, "not found")


async def test_an_empty_path_is_the_root(ask):
    """As RFC 9110 §4.2.3 has it, where the request target is a whole URI."""
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
async def test_a_method_that_a_path_does_not_have_is_not_allowed(ask, method, path, allow):
    """A known path with another method, case included, answers 405 and names its methods."""
    answer = await ask(method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert method == "HEAD" or answer.error == "method not allowed"


async def test_what_breaks_inside_is_told_to_nobody(bench, warnings, no_lost_failures):
    """An answer that fails as a whole is a 500 without details, and a failure in the log."""
    _, transport = bench.connect(b"GET /broken HTTP/1.1\r\nHost: a\r\n\r\n")
    (answer,) = parse(transport.value())
    assert (answer.status, answer.error) == (500, "internal server error")
    assert "TwistedWeb" not in answer.headers["server"]
    assert len([event for event in warnings if event.get("log_failure")]) == 1
    warnings.clear()
    no_lost_failures.clear()
