"""Connections while the service stops."""

import json

import pytest
from twisted.internet import defer
from twisted.internet.error import ConnectError, ConnectionRefusedError

from solisync.web.wire.connection import State
from solisync.web.wire.connections import GRACE_SECONDS
from tests.harness.constants import PASSWORD
from tests.harness.service import start
from tests.wire.cases import HEALTH
from tests.wire.sockets import parse, post, turn


def begin_to_drain(bench):
    """Begin to drain, as a stopping service does."""
    bench.connections.announce_end()
    return defer.Deferred.fromCoroutine(bench.connections.drain(10))


@pytest.mark.parametrize(
    ("beginning", "rest"),
    [
        (b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n", b""),
        (b"GET /n", b"ow HTTP/1.1\r\nHost: a\r\n\r\n"),
        (b"GET /now HTTP/1.1\r\nHost: a\r\n", b"\r\n"),
        (b"POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", b"xx"),
        (b"POST /now HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx", b"x"),
    ],
)
def test_begun_request_is_the_last_that_is_answered(bench, beginning, rest):
    """A drain waits for every request of which a byte has arrived, and then closes its connection."""
    channel, transport = bench.connect(beginning)
    drained = begin_to_drain(bench)
    assert not transport.closing
    channel.dataReceived(rest + HEALTH)
    if bench.pages.waiting:
        bench.pages.answer()
    (answer,) = parse(transport.value())
    assert (answer.status, answer.headers["connection"], transport.closing) == (200, "close", "close")
    assert not drained.called
    bench.disconnect(channel)
    assert drained.called


def test_idle_connection_is_closed_soon(bench):
    """The drain first gives a request that is already on its way a moment to arrive."""
    connections = [bench.connect(), bench.connect(HEALTH)]
    drained = begin_to_drain(bench)
    assert [transport.closing for _, transport in connections] == [None, None]
    bench.clock.advance(GRACE_SECONDS)
    for channel, transport in connections:
        assert transport.closing == "close"
        assert not drained.called
        bench.disconnect(channel)
    assert drained.called


def test_request_that_was_on_its_way_is_answered(bench):
    """A request that arrives on an idle connection as the drain begins is the last there."""
    channel, transport = bench.connect(HEALTH)
    drained = begin_to_drain(bench)
    channel.dataReceived(HEALTH)
    assert [answer.headers.get("connection") for answer in parse(transport.value())] == [None, "close"]
    assert transport.closing == "close"
    bench.disconnect(channel)
    assert drained.called


def test_drain_has_a_time_limit(bench, warnings):
    """Connections that haven't ended in time are cut, and the log has their number."""
    _, transport = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n")
    drained = begin_to_drain(bench)
    bench.clock.pump([GRACE_SECONDS, 9.9 - GRACE_SECONDS])
    assert not transport.closing
    bench.clock.advance(0.1)
    assert transport.closing == "abort"
    assert drained.called
    assert [event["count"] for event in warnings] == [1]


async def test_stopping_service_finishes_running_requests(reactor, connect, shared_dsn, server):
    """A running request ends normally, an idle connection is closed, and a new one is refused."""
    running = await start(reactor, shared_dsn, bcrypt_cost=10)
    idle, busy = await connect(running.port), await connect(running.port)
    idle.send(HEALTH)
    await idle.until(lambda data: data.endswith(b"}"))
    body = json.dumps({"username": "ann", "password": PASSWORD}).encode()
    busy.send(post("/api/auth/register", f"Content-Length: {len(body)}\r\n") + body)
    while not any(channel.state is State.REPLY for channel in running.service.site.connections.open):
        await turn()
    stopped = running.service.stopService()
    await turn()
    with pytest.raises((ConnectionRefusedError, ConnectError)):
        await connect(running.port)
    (answer,) = await busy.answers()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    await idle.closed
    await stopped
