"""Clients that close their sending side, and clients that hang up (docs/protocol.md "Common to all routes")."""

import json
import socket
from contextlib import closing

import pytest
import pytest_twisted
from twisted.internet.threads import deferToThread

from solisync.web.wire.deadlines import INTERIM, PROBE_SECONDS
from tests.harness.constants import PASSWORD, PATIENCE
from tests.wire.cases import HEALTH
from tests.wire.sockets import parse, post, turn

LATER = b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n"


def converse(port, data):
    """Send bytes, close the sending side, and read until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.fixture(params=["tcp", "unix"])
def port(request, reactor, bench, place):
    """The port of a bench, and a function that connects to it with a blocking socket."""
    if request.param == "unix":
        path = str(place / "socket")
        port = reactor.listenUNIX(path, bench.site)
    else:
        port = reactor.listenTCP(0, bench.site, interface="127.0.0.1")

    def connect():
        if request.param == "unix":
            client = socket.socket(socket.AF_UNIX)
            client.connect(path)
        else:
            client = socket.create_connection(("127.0.0.1", port.getHost().port))
        client.settimeout(PATIENCE)
        return client

    yield connect
    pytest_twisted.blockon(port.stopListening())


async def until(condition):
    """Let the reactor run until a condition is true."""
    while not condition():
        await turn()


def is_probing(channel):
    return channel.probe is not None and channel.probe.running


async def probe(bench):
    """Advance half a second after the end of the input; return whether the connection is still open."""
    await until(lambda: not bench.connections.open or is_probing(*bench.connections.open))
    bench.clock.advance(PROBE_SECONDS)
    for _ in range(3):  # let the bytes go out
        await turn()
    return bool(bench.connections.open)


def received(client):
    """Return the bytes that a client receives until the connection ends."""
    return deferToThread(lambda: b"".join(iter(lambda: client.recv(65536), b"")))


async def test_whole_request_is_answered_after_the_end_of_the_input(server):
    """Its answer may be ready immediately, or need the database or a password's hash. Then the connection ends."""
    player = await server.player()
    body = json.dumps({"username": "bob", "password": PASSWORD}).encode()
    requests = [
        HEALTH,
        b"GET /health HTTP/1.0\r\n\r\n",
        b"GET /api/me HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %b\r\n\r\n" % player.tokens.access_token.encode(),
        post("/api/auth/register", f"Content-Length: {len(body)}\r\n") + body,
        post("/api/auth/login", "Transfer-Encoding: chunked\r\n") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
    ]
    for request in requests:
        answers = parse(await deferToThread(converse, server.port, request))
        assert [answer.status for answer in answers if answer.status != 100] == [200]


async def test_only_whole_requests_are_answered(server):
    """All pipelined requests before the end are answered; a part of a request is dropped."""
    for count in (3, 100):
        for rest in (b"", HEALTH[:20], HEALTH[:-2], b"POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx"):
            answers = parse(await deferToThread(converse, server.port, HEALTH * count + rest))
            assert [answer.status for answer in answers] == [200] * count


async def test_last_answer_has_connection_close(bench, port):
    """The client sends no more, so the connection closes."""
    with closing(port()) as client:
        client.sendall(LATER)
        await until(lambda: bench.pages.waiting)
        client.shutdown(socket.SHUT_WR)
        (channel,) = bench.connections.open
        await until(lambda: not channel.persistent)
        bench.pages.answer()
        (answer,) = parse(await received(client))
    assert (answer.status, answer.headers["connection"]) == (200, "close")


@pytest.mark.parametrize(("version", "expected"), [(b"HTTP/1.1", [100, 200]), (b"HTTP/1.0", [200])])
async def test_slow_answer_is_announced_once(bench, port, version, expected):
    """One 100 Continue comes after half a second. HTTP/1.0 has no interim responses."""
    with closing(port()) as client:
        client.sendall(LATER.replace(b"HTTP/1.1", version))
        client.shutdown(socket.SHUT_WR)
        await until(lambda: bench.pages.waiting)
        for _ in range(5):
            assert await probe(bench)
        bench.pages.answer()
        assert [answer.status for answer in parse(await received(client))] == expected


async def test_hang_up_cancels_the_request(bench, port):
    """The service finds out within a second, and sends no answer."""
    client = port()
    client.sendall(LATER)
    await until(lambda: bench.pages.waiting)
    client.close()
    (request,) = bench.pages.waiting
    gone = []
    request.on_gone = lambda: gone.append(request)
    for _ in range(2):
        await probe(bench)
    await until(lambda: gone)
    assert (request.code, bench.connections.open) == (499, set())


async def test_reset_cancels_immediately(bench, port):
    """An aborted connection needs no probe."""
    client = port()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.sendall(LATER)
    await until(lambda: bench.pages.waiting)
    client.close()
    if client.family == socket.AF_UNIX:  # Unix sockets have no reset
        await probe(bench)
    await until(lambda: not bench.connections.open)


@pytest.mark.parametrize(
    "beginning", [b"", HEALTH[:20], HEALTH.replace(b"\r\n\r\n", b"\r\nContent-Length: 9\r\n\r\nx")]
)
async def test_connection_without_a_whole_request_ends_with_its_input(bench, port, beginning):
    """The rest of the request can't arrive any more."""
    with closing(port()) as client:
        client.sendall(beginning)
        await until(lambda: bench.connections.open)
        client.shutdown(socket.SHUT_WR)
        assert await received(client) == b""
    await until(lambda: not bench.connections.open)


def test_no_probe_follows_the_last_answer(bench):
    """While the answer is sent to a half-closed client, no request is left to announce."""
    channel, transport = bench.connect(LATER)
    channel.readConnectionLost()
    bench.pages.answer()
    assert transport.closing == "close"
    bench.clock.advance(PROBE_SECONDS)
    assert [answer.status for answer in parse(transport.value())] == [200]
    bench.disconnect(channel)


async def test_half_closed_client_must_read(bench, port):
    """A client that stops reading is cut off after 30 s, like any other."""
    bench.pages.big = b"x" * 20_000_000
    with closing(port()) as client:
        client.sendall(LATER.replace(b"later", b"big"))
        client.shutdown(socket.SHUT_WR)
        await until(lambda: any(channel.sender.full for channel in bench.connections.open))
        for _ in range(61):
            bench.clock.advance(PROBE_SECONDS)
            await turn()
        await until(lambda: not bench.connections.open)


async def test_refusal_and_end_of_the_input_end_the_connection(bench, port):
    """No connection lingers once both sides have closed their sending side."""
    with closing(port()) as client:
        client.sendall(b"nonsense\r\n\r\n")
        assert [answer.status for answer in parse(await received(client))] == [400]
        assert len(bench.connections.open) == 1
        client.shutdown(socket.SHUT_WR)
        await until(lambda: not bench.connections.open)


def test_interim_response_is_valid():
    """Clients skip its status."""
    assert [answer.status for answer in parse(INTERIM)] == [100]
