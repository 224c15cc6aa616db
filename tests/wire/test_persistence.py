"""Pipelining, keep-alive, and who ends a connection (RFC 9112 §9)."""

import json

import pytest

from tests.harness.constants import PASSWORD
from tests.wire.cases import GET, HEALTH, LAST
from tests.wire.sockets import parse, post


async def test_pipelined_requests_are_answered_in_order(connect, server):
    """Answers come in the order of the requests, whichever is ready first."""
    body = json.dumps({"username": "ann", "password": PASSWORD}).encode()
    register = post("/api/auth/register", f"Content-Length: {len(body)}\r\n") + body
    wire = await connect(server.port)
    wire.send(register + HEALTH + b"GET /nope HTTP/1.1\r\nHost: a\r\n\r\n" + register + LAST + HEALTH)
    assert [answer.status for answer in await wire.answers()] == [200, 200, 404, 409, 200]


def test_nothing_overtakes_a_refusal(bench):
    """A malformed request behind a slow one is refused after the slow one's answer."""
    _, transport = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n" + HEALTH)
    assert transport.value() == b""
    bench.pages.answer()
    assert [answer.status for answer in parse(transport.value())] == [200, 400]


def test_a_connection_that_pipelines_lets_others_have_their_turn(bench):
    """At most 16 of its requests are answered in a turn of the reactor; until the next, nothing more is read."""
    channel, transport = bench.connect(HEALTH * 40 + HEALTH[:-1])
    assert (len(parse(transport.value())), transport.producerState) == (16, "paused")
    channel.dataReceived(HEALTH[-1:] + HEALTH)  # which the transport had read before it was paused
    assert (len(parse(transport.value())), transport.producerState) == (16, "paused")
    bench.clock.advance(0)
    assert (len(parse(transport.value())), transport.producerState) == (42, "producing")
    assert transport.closing is None


async def test_who_asks_once_does_not_wait_for_who_pipelines(connect, shared_service):
    """One request is answered long before a thousand that another connection sent earlier."""
    greedy, modest = [await connect(shared_service.port) for _ in range(2)]
    greedy.send(HEALTH * 1000)
    modest.send(HEALTH)
    await modest.until(lambda data: data.endswith(b"}"))
    assert greedy.received.count(b"HTTP/1.1 200 ") < 500
    await greedy.until(lambda data: data.count(b"HTTP/1.1 200 ") == 1000 and data.endswith(b"}"))


def test_connections_that_pipeline_take_turns(bench):
    """However many they are, one goes on in each turn of the reactor, and one that is lost keeps nobody waiting."""
    made = [bench.connect(HEALTH * 40) for _ in range(3)]
    bench.disconnect(made[0][0])
    order = []
    for number, (channel, _) in enumerate(made):
        channel.parse_on = lambda number=number, parse_on=channel.parse_on: order.append(number) or parse_on()
    bench.clock.advance(0)
    assert order == [1, 2, 1, 2]
    assert [len(parse(transport.value())) for _, transport in made] == [16, 40, 40]


def test_sixteen_pipelined_requests_leave_the_connection_as_it_was(bench):
    """It reads on, is idle for as long as any other, and answers the next request."""
    channel, transport = bench.connect(HEALTH * 16)
    assert len(parse(transport.value())) == 16
    channel.dataReceived(HEALTH[:5])
    bench.clock.advance(0)
    channel.dataReceived(HEALTH[5:])
    assert len(parse(transport.value())) == 17
    bench.clock.advance(59)
    assert transport.closing is None
    bench.clock.advance(1)
    assert (len(parse(transport.value())), transport.closing) == (17, "close")


def test_a_request_that_waits_for_its_turn_is_not_idle(bench):
    """A drain waits for what was pipelined, and the first of it is the last that is answered."""
    _, transport = bench.connect(HEALTH * 20)
    bench.connections.announce_end()
    for channel in list(bench.connections.open):
        channel.close_if_idle()
    assert transport.closing is None
    bench.clock.advance(0)
    assert [answer.headers.get("connection") for answer in parse(transport.value())] == [None] * 16 + ["close"]
    assert transport.closing == "close"


@pytest.mark.parametrize(
    "request_bytes",
    [
        LAST,
        GET + b"Connection: Close\r\n\r\n",
        GET + b"Connection: keep-alive,close\r\n\r\n",
        GET + b"Connection: close , x\r\n\r\n",
        GET + b"Connection: x\r\nConnection: close\r\n\r\n",
        b"GET /health HTTP/1.0\r\n\r\n",
        b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ],
)
async def test_a_connection_ends_when_its_client_says_so(talk, request_bytes):
    """After `close` in any spelling, and after HTTP/1.0, the answer says close and is the last."""
    (answer,) = await talk(request_bytes + HEALTH)
    assert (answer.status, answer.headers["connection"]) == (200, "close")
