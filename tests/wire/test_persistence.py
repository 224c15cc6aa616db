"""Pipelining, keep-alive, and the end of connections (RFC 9112 §9)."""

import json

import pytest

from tests.harness.constants import PASSWORD
from tests.wire.cases import GET, HEALTH, LAST
from tests.wire.sockets import parse, post


async def test_pipelined_requests_are_answered_in_order(connect, server):
    """The order of the requests counts, whichever answer is ready first."""
    body = json.dumps({"username": "ann", "password": PASSWORD}).encode()
    register = post("/api/auth/register", f"Content-Length: {len(body)}\r\n") + body
    wire = await connect(server.port)
    wire.send(register + HEALTH + b"GET /nope HTTP/1.1\r\nHost: a\r\n\r\n" + register + LAST + HEALTH)
    assert [answer.status for answer in await wire.answers()] == [200, 200, 404, 409, 200]


def test_refusal_follows_earlier_answers(bench):
    """A malformed request behind a slow one is refused after the slow one's answer."""
    _, transport = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n" + HEALTH)
    assert transport.value() == b""
    bench.pages.answer()
    assert [answer.status for answer in parse(transport.value())] == [200, 400]


def test_pipelining_connection_has_16_answers_a_turn(bench):
    """The connection reads nothing more until the reactor's next turn."""
    channel, transport = bench.connect(HEALTH * 40 + HEALTH[:-1])
    assert (len(parse(transport.value())), transport.producerState) == (16, "paused")
    channel.dataReceived(HEALTH[-1:] + HEALTH)  # the transport had read this before it was paused
    assert (len(parse(transport.value())), transport.producerState) == (16, "paused")
    bench.clock.advance(0)
    assert (len(parse(transport.value())), transport.producerState) == (42, "producing")
    assert transport.closing is None


async def test_single_request_does_not_wait_for_pipelined_ones(connect, shared_service):
    """Its answer comes long before the last of a thousand earlier requests of another connection."""
    greedy, modest = [await connect(shared_service.port) for _ in range(2)]
    greedy.send(HEALTH * 1000)
    modest.send(HEALTH)
    await modest.until(lambda data: data.endswith(b"}"))
    assert greedy.received.count(b"HTTP/1.1 200 ") < 500
    await greedy.until(lambda data: data.count(b"HTTP/1.1 200 ") == 1000 and data.endswith(b"}"))


def test_pipelining_connections_take_turns(bench):
    """One connection continues in each turn of the reactor. A lost connection delays no other."""
    made = [bench.connect(HEALTH * 40) for _ in range(3)]
    bench.disconnect(made[0][0])
    order = []
    for number, (channel, _) in enumerate(made):
        channel.parse_on = lambda number=number, parse_on=channel.parse_on: order.append(number) or parse_on()
    bench.clock.advance(0)
    assert order == [1, 2, 1, 2]
    assert [len(parse(transport.value())) for _, transport in made] == [16, 40, 40]


def test_connection_is_unchanged_after_sixteen_pipelined_requests(bench):
    """The connection reads, is idle for the usual time, and answers the next request."""
    channel, transport = bench.connect(HEALTH * 16)
    assert len(parse(transport.value())) == 16
    channel.dataReceived(HEALTH[:5])
    bench.clock.advance(0)
    channel.dataReceived(HEALTH[5:])
    assert len(parse(transport.value())) == 17
    bench.clock.advance(119)
    assert transport.closing is None
    bench.clock.advance(1)
    assert (len(parse(transport.value())), transport.closing) == (17, "close")


def test_request_that_waits_for_its_turn_is_not_idle(bench):
    """A drain waits for pipelined requests, and the first of them is the last that is answered."""
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
async def test_connection_ends_when_its_client_wants(talk, request_bytes):
    """After `close` in any spelling, and after HTTP/1.0, the answer has close and is the last."""
    (answer,) = await talk(request_bytes + HEALTH)
    assert (answer.status, answer.headers["connection"]) == (200, "close")
