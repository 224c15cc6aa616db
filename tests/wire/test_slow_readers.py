"""Clients that read slowly get everything; clients that don't read are cut off (docs/security.md "Bounds")."""

import gc
import weakref

import pytest
from twisted.internet import ssl
from twisted.internet.endpoints import SSL4ClientEndpoint, connectProtocol

from solisync.web.wire import deadlines
from solisync.web.wire.sending import PIECE_BYTES
from tests.harness.certificates import Issued
from tests.harness.concurrency import until
from tests.wire.bench import Bench, Pages
from tests.wire.sockets import Wire, parse, turn


def test_client_that_reads_nothing_is_cut_off(bench):
    """The limit is 30 s in which nothing of an answer was taken; a slow reader gets all of it."""
    request = b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n"
    channel, transport = bench.connect()
    transport.full = True
    channel.dataReceived(request)
    sent = b""
    while transport.value():
        bench.clock.advance(29.9)
        assert not transport.closing
        assert len(transport.value()) < PIECE_BYTES + 1000
        sent += transport.drained()
    assert [answer.body for answer in parse(sent)] == [Pages.big]
    channel.dataReceived(request)
    bench.clock.advance(30)
    assert transport.closing == "abort"


def test_client_on_a_slow_line_is_not_cut_off(bench, monkeypatch):
    """A client that takes 64 KiB in 30 s continues, even if the transport is never empty. With less, it is cut off."""
    taken = 0
    monkeypatch.setattr(deadlines, "acknowledged_bytes", lambda transport: taken)
    channel, transport = bench.connect()
    transport.full = True
    channel.dataReceived(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
    for _ in range(5):
        taken += deadlines.TAKEN_BYTES
        bench.clock.advance(30)
        assert not transport.closing
    taken += deadlines.TAKEN_BYTES - 1
    bench.clock.advance(30)
    assert transport.closing == "abort"


async def test_bytes_that_a_client_has_taken_are_known(reactor, connect):
    """TCP reports all bytes for a client that reads, and fewer for one that doesn't."""
    bench = Bench()
    bench.pages.big = b"x" * 8_000_000
    port = reactor.listenTCP(0, bench.site, interface="127.0.0.1")
    wire = await connect(port.getHost().port)
    wire.send(b"GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
    await wire.until(lambda data: data.endswith(b"{}"))
    (channel,) = bench.connections.open
    while deadlines.acknowledged_bytes(channel.transport) != len(wire.received):
        await turn()  # an acknowledgement may take a while
    wire.transport.pauseProducing()
    wire.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
    while not channel.sender.full:
        await turn()
    assert deadlines.acknowledged_bytes(channel.transport) < 8_000_000
    assert deadlines.acknowledged_bytes(None) == 0
    wire.transport.abortConnection()
    await port.stopListening()


@pytest.mark.parametrize("path", [b"now", b"later", b"big"])
def test_lost_connection_is_freed_without_the_collector(path):
    """Its transport may have 80 KiB of unsent data, and the collector runs only after thousands of new objects."""
    bench = Bench()
    channel, transport = bench.connect()
    transport.full = path == b"big"
    channel.dataReceived(b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\nGET" % path)
    bench.disconnect(channel)
    freed = weakref.ref(channel)
    transport.producer = None  # as a transport does when its connection is lost
    gc.disable()
    try:
        del channel, transport
        assert freed() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("ending", [b"", b"Connection: close\r\n"])
def test_slow_reader_gets_the_last_answer(bench, ending):
    """Closing waits for unsent bytes, until 30 s pass without progress."""
    channel, transport = bench.connect()
    transport.full = True
    channel.dataReceived(b"GET /big HTTP/1.1\r\nHost: a\r\n" + ending + b"\r\n")
    bench.clock.advance(29)
    sent = transport.drained()
    bench.connections.announce_end()
    while transport.value():
        bench.clock.advance(29)
        assert not transport.disconnected
        sent += transport.value()
        transport.clear()
        if transport.producer is not None:
            transport.producer.resumeProducing()
    assert [answer.body for answer in parse(sent)] == [Pages.big]
    assert transport.closing == "close"


async def test_last_answer_is_whole_when_the_client_has_sent_more(reactor, connect):
    """Closing a socket with unread bytes would reset the connection, and drop what the client hasn't received."""
    bench = Bench()
    bench.pages.big = b"x" * 8_000_000
    port = reactor.listenTCP(0, bench.site, interface="127.0.0.1")
    wire = await connect(port.getHost().port)
    wire.transport.pauseProducing()
    wire.send(b"GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    await until(reactor, lambda: [each for each in bench.connections.open if each.sender.full])
    wire.send(b"\r\n")
    wire.transport.resumeProducing()
    (answer,) = await wire.answers()
    assert len(answer.body) == 8_000_000
    await until(reactor, lambda: not bench.connections.open)
    await port.stopListening()


async def test_idle_client_of_tls_that_reads_nothing_is_closed(reactor):
    """TLS would wait for its confirmation, and so would a stopping service, or a new client without a descriptor."""
    bench = Bench()
    issued = Issued("a", is_authority=False)
    certificate = ssl.PrivateCertificate.loadPEM(issued.key_pem + issued.pem)
    port = reactor.listenSSL(0, bench.site, certificate.options(), interface="127.0.0.1")
    endpoint = SSL4ClientEndpoint(reactor, "127.0.0.1", port.getHost().port, ssl.CertificateOptions())
    wire = await connectProtocol(endpoint, Wire())
    wire.send(b"GET /now HTTP/1.1\r\nHost: a\r\n\r\n")
    await wire.until(lambda data: data.endswith(b"{}"))
    wire.transport.transport.pauseProducing()
    (channel,) = bench.connections.open
    channel.close_if_idle()
    await until(reactor, lambda: not bench.connections.open)
    wire.transport.transport.resumeProducing()
    await wire.closed
    await port.stopListening()


def test_pipelined_answers_wait_for_the_reader(bench):
    """The service reads and handles nothing more until the answer is taken."""
    channel, transport = bench.connect()
    transport.full = True
    channel.dataReceived(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
    assert len(transport.value()) < PIECE_BYTES + 1000
    assert transport.producerState == "paused"
    transport.full = False
    sent = transport.drained()
    while transport.producerState == "paused":  # one turn of the reactor has a limit of answers
        bench.clock.advance(0)
    answers = parse(sent + transport.value())
    assert [answer.body for answer in answers] == [Pages.big] * 100
    assert transport.producerState == "producing"


def test_client_with_a_small_unread_answer_is_not_cut_off(bench):
    """Memory is short because of other clients."""
    bench.connections.unread.most = 2 * len(Pages.big)
    clients = [bench.connect() for _ in range(4)]
    for path, (channel, transport) in zip((b"/now", b"/big", b"/big", b"/big"), clients, strict=True):
        transport.full = True
        channel.dataReceived(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % path)
    for _, transport in clients:
        transport.full = False
        transport.drained()
    assert [transport.closing for _, transport in clients] == [None, "abort", None, None]


async def test_real_client_that_reads_nothing_is_cut_off(reactor, connect):
    """Over real sockets, the service keeps one answer in memory, and ends the connection."""
    bench = Bench()
    bench.pages.big = b"x" * 8_000_000
    port = reactor.listenTCP(0, bench.site, interface="127.0.0.1")
    wire = await connect(port.getHost().port)
    wire.transport.pauseProducing()
    wire.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n" * 50)
    while not any(channel.sender.full for channel in bench.connections.open):
        await turn()
    while bench.connections.open:
        bench.clock.advance(30)
        await turn()
    wire.transport.resumeProducing()
    await wire.closed
    assert len(wire.received) < 8_000_000
    await port.stopListening()


async def test_slow_socket_gets_everything(reactor, connect):
    """Eight megabytes arrive whole and in order."""
    bench = Bench()
    bench.pages.big = bytes(range(256)) * 32_000
    port = reactor.listenTCP(0, bench.site, interface="127.0.0.1")
    wire = await connect(port.getHost().port)
    wire.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n" * 2 + b"GET /big HTTP/1.0\r\n\r\n")
    assert [answer.body for answer in await wire.answers()] == [bench.pages.big] * 3
    await port.stopListening()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # raised within Twisted as it reads the certificate
async def test_tls_answers_arrive_whole(reactor):
    """TLS can't be half-closed; refusals and large answers arrive all the same."""
    bench = Bench()
    issued = Issued("a", is_authority=False)
    certificate = ssl.PrivateCertificate.loadPEM(issued.key_pem + issued.pem)
    port = reactor.listenSSL(0, bench.site, certificate.options(), interface="127.0.0.1")
    for data, expected in [
        (b"GET /big HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n", [(200, len(Pages.big)), (400, 23)]),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 2_000_000, [(413, 45)]),
    ]:
        endpoint = SSL4ClientEndpoint(reactor, "127.0.0.1", port.getHost().port, ssl.CertificateOptions())
        wire = await connectProtocol(endpoint, Wire())
        wire.send(data)
        assert [(answer.status, len(answer.body)) for answer in await wire.answers()] == expected
    await port.stopListening()
