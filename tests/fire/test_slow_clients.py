"""Slow clients: each is cut at its deadline, and doesn't delay other clients before.

Source: docs/security.md "Bounds".
"""

import socket

import pytest
from twisted.internet.task import deferLater

from solisync.rules.shapes import MAX_BODY
from solisync.web.wire import connection, deadlines
from tests.fire.raw import Crowd, Kind, Watch, ask, head, running
from tests.harness.concurrency import at_once
from tests.harness.constants import PATIENCE
from tests.harness.postgres import truncate
from tests.wire.bench import Bench
from tests.wire.sockets import parse

SLOWNESS = 10  # how much slower than the targets the service may be where the machine is busy


@pytest.fixture
def bench():
    return Bench()


async def large_replay(process):
    """Return the path of a replay of the largest size."""
    client = await process.player("ann")
    replay = b'{"mode": "Zen", "draw_mode": "DrawOne", "final_score": 1, "time_seconds": 1, "recorded_at": "2026-01-01"'
    replay += b', "moves": "' + b"x" * (MAX_BODY - len(replay) - 14) + b'"}'
    return f"/api/replays/{await client.upload_replay(replay)}"


def fetch(port, request):
    """Fetch a path and read all of it."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        return ask(connection, request)[0]


async def test_slow_clients_are_cut_and_delay_no_other(serve, shared_dsn, reactor, figure):
    """Dribbled headers, dribbled bodies and unread answers come together; memory stays flat."""
    truncate(shared_dsn)
    each, seconds = 300, 60
    process = await serve(shared_dsn)
    large = head("GET", await large_replay(process))
    # the connections to the database keep buffers as large as the largest answer they ever had
    await at_once(16, lambda _: fetch(process.port, large), range(64))
    kinds = {
        Kind(name="header", opening=b"GET /health HTTP/1.1\r\nHost: a\r\nX-Slow: "): connection.HEADER_SECONDS,
        Kind(name="body", opening=head("POST", "/api/sync/push", "Content-Length: 9000")): connection.BODY_SECONDS,
        Kind(name="unread", opening=large * 20, drips=False, reads=False): deadlines.UNREAD_SECONDS,
    }
    crowd = Crowd(process.port, kinds, each)
    watch = Watch(process, {"health": head("GET", "/health")})
    with running(watch, crowd):
        await deferLater(reactor, seconds)
        lasted = {kind.name: crowd.oldest(kind.name) for kind in kinds}
    cuts = {name: len(lives) for name, lives in crowd.lives.items()}
    figure(f"{each} of each for {seconds} s: {watch}; cut {cuts}")
    figure(f"the last was cut after {', '.join(f'{name} {lasted[name]:.1f} s' for name in lasted)}")
    figure(f"the crowd itself took {crowd.cpu_seconds / seconds:.1%} of a core")
    for kind, deadline in kinds.items():
        assert cuts[kind.name] >= each
        if kind.reads:  # an unread answer may be given up earlier, where there are too many
            assert deadline - 0.5 < min(crowd.lives[kind.name])
        assert lasted[kind.name] < 1.5 * deadline + 5  # a busy machine writes the first bytes late
    assert set(crowd.statuses["header"]) == set(crowd.statuses["body"]) == {408}
    assert watch.p99("health") < 0.05 * SLOWNESS
    assert watch.growth_mib < 50


@pytest.mark.parametrize("target", ["/nope", "/api/auth/login", "/api/sync/push"])
async def test_unfinished_bodies_take_little_memory(serve, shared_dsn, reactor, figure, target):
    """250 bodies of 1 MiB lack their last byte. They take at most 70 MiB, and other requests don't wait."""
    truncate(shared_dsn)
    process = await serve(shared_dsn)
    await deferLater(reactor, 1)  # for the memory of the start to settle
    opening = head("POST", target, f"Content-Length: {MAX_BODY}") + bytes(MAX_BODY - 1)
    watch = Watch(process, {"health": head("GET", "/health")})
    clients = []

    def send(_):
        client = socket.create_connection(("127.0.0.1", process.port), timeout=PATIENCE)
        clients.append(client)
        client.sendall(opening)

    with running(watch):
        try:
            await at_once(16, send, range(250))
            await deferLater(reactor, 2)
        finally:
            for client in clients:
                client.close()
    figure(f"250 unfinished bodies of 1 MiB for {target}: {watch}")
    assert watch.growth_mib <= 70
    assert watch.p99("health") < 0.05 * SLOWNESS


@pytest.mark.short
def test_unread_answers_have_a_bound(bench):
    """When too much is unread, the answers whose clients have read nothing for longest are given up.

    Such a client is cut when it continues to read, or at its deadline; one that is only slow gets everything.
    """
    big = len(bench.pages.big)
    bench.connections.unread.most = 10 * big
    request = b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n"
    slow_connection, slow = bench.connect()
    slow.full = True
    slow_connection.dataReceived(request)
    received = b""
    stalled = []
    for _ in range(30):
        connection, transport = bench.connect()
        transport.full = True
        connection.dataReceived(request)
        stalled.append((connection, transport))
        received += slow.drained()
        assert sum(len(piece) for channel in bench.connections.open for piece in channel.sender._unsent) <= 10 * big
    assert [answer.body for answer in parse(received)] == [bench.pages.big]
    given_up = [not each.sender._unsent for each, _ in stalled]
    assert any(given_up)
    assert given_up == sorted(given_up, reverse=True)
    stalled[0][1].drained()
    assert [transport.closing for _, transport in stalled] == ["abort"] + [None] * 29
    bench.clock.advance(30)
    assert {transport.closing for _, transport in stalled} == {"abort"}
    for connection in list(bench.connections.open):
        bench.disconnect(connection)
    assert bench.connections.unread.used == 0
