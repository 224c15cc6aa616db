"""Fixtures for tests of the wire. They use plain sockets, because HTTP clients would send few of these bytes."""

import pytest
import pytest_twisted
from twisted.internet import defer
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.logger import LogLevel, globalLogPublisher

from tests.harness.service import start
from tests.wire.bench import Bench
from tests.wire.cases import ORIGIN
from tests.wire.sockets import Wire


@pytest.fixture
def connect(reactor):
    """Connect to a port of this machine."""
    wires = []

    async def connect(port):
        wire = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port), Wire())
        wires.append(wire)
        return wire

    yield connect
    for wire in wires:
        wire.transport.abortConnection()


@pytest.fixture
def talk(connect, shared_service):
    """Send bytes; return the answers when the service has closed the connection."""

    async def talk(data, *, port=None, head=False):
        wire = await connect(port or shared_service.port)
        wire.send(data)
        return await wire.answers(head=head)

    return talk


@pytest.fixture
def ask(talk):
    """Send one request on a separate connection; return its answer."""

    async def ask(method, path, headers=None, body=b"", *, port=None):
        lines = {"Host": "a", "Connection": "close", "Content-Length": len(body), **(headers or {})}
        fields = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        request = f"{method} {path} HTTP/1.1\r\n{fields}\r\n".encode("latin-1") + body
        (answer,) = await talk(request, port=port, head=method == "HEAD")
        return answer

    return ask


@pytest.fixture(autouse=True)
def warnings():
    """Collect the warnings that are logged during the test. A failure among them fails the test."""
    seen = []

    def observe(event):
        if event["log_level"] >= LogLevel.warn:
            seen.append(event)

    globalLogPublisher.addObserver(observe)
    yield seen
    globalLogPublisher.removeObserver(observe)
    assert not [event for event in seen if "log_failure" in event or "failure" in event]  # old log.err sets the second


@pytest.fixture(scope="module")
def cors(reactor, shared_dsn):
    """A service that a browser game at ORIGIN may use."""
    settings = {"SOLISYNC_CORS_ORIGINS": f"{ORIGIN},https://other.example"}
    running = pytest_twisted.blockon(defer.Deferred.fromCoroutine(start(reactor, shared_dsn, settings=settings)))
    yield running
    pytest_twisted.blockon(running.service.stopService())


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    for channel in list(bench.connections.open):
        bench.disconnect(channel)
    bench.clock.advance(0)  # finish the turn in which they ended
    assert not bench.clock.getDelayedCalls(), "a connection left a timer behind"
