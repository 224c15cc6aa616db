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
