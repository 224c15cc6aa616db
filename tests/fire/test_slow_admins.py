"""Slow and oversized requests at the console's listener: each is cut, and players don't notice.

Source: docs/security.md "Bounds".
"""

from twisted.internet.task import deferLater

from solisync.rules.shapes import MAX_BODY
from solisync.web.wire import connection
from tests.fire.raw import Crowd, Kind, Watch, head, running
from tests.harness.postgres import truncate
from tests.harness.processes import free_port

SLOWNESS = 10  # how much slower than the targets the service may be where the machine is busy
EACH, SECONDS, QUIET_SECONDS = 100, 45, 10


def opening(*lines):
    """Return the beginning of a sign-in."""
    return head("POST", "/api/admin/session", *lines).replace(b"Host: a", b"Host: localhost")


async def test_slow_clients_of_the_console_do_not_delay_players(serve, shared_dsn, reactor, figure):
    """Dribbled and oversized heads and bodies come together, and /health stays quick."""
    truncate(shared_dsn)
    port = free_port()
    process = await serve(shared_dsn, SOLISYNC_ADMIN_LISTEN=f"tcp:{port}:interface=127.0.0.1")
    slow = {
        Kind(name="head", opening=b"GET /players HTTP/1.1\r\nHost: localhost\r\nX-Slow: "): connection.HEADER_SECONDS,
        Kind(name="body", opening=opening("Content-Length: 9000")): connection.BODY_SECONDS,
    }
    large = {
        Kind(name="large head", opening=opening("X-Large: " + "x" * 70_000), drips=False): 431,
        Kind(name="large body", opening=opening(f"Content-Length: {MAX_BODY + 1}"), drips=False): 413,
        Kind(name="unfinished body", opening=opening(f"Content-Length: {MAX_BODY}") + bytes(200_000), drips=False): 408,
    }
    health = {"health": head("GET", "/health")}
    with running(quiet := Watch(process, health)):
        await deferLater(reactor, QUIET_SECONDS)
    watch, crowd = Watch(process, health), Crowd(port, {**slow, **large}, EACH)
    with running(watch, crowd):
        await deferLater(reactor, SECONDS)
        lasted = {kind.name: crowd.oldest(kind.name) for kind in slow}
    figure(f"quiet: {quiet}; {EACH} of each at the console: {watch}")
    figure(f"answers { ({name: dict(found) for name, found in crowd.statuses.items()}) }, lasted {lasted}")
    for kind, deadline in slow.items():
        assert set(crowd.statuses[kind.name]) == {408}
        assert deadline - 0.5 < min(crowd.lives[kind.name])
        assert lasted[kind.name] < deadline + 5
    for kind, status in large.items():
        assert set(crowd.statuses[kind.name]) <= {status, 503}  # 503: unfinished bodies share a budget
    assert watch.p99("health") < 0.05 * SLOWNESS
    assert watch.growth_mib < 70
