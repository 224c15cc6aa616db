"""The port: obstacles to listening, and its behaviour under overload."""

import contextlib
import os
import resource
import socket
import stat
from types import SimpleNamespace

import pytest
from twisted.internet.address import IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.threads import deferToThread
from twisted.logger import capturedLogs, formatEvent

from solisync.errors import FatalError
from solisync.process.listening import Acceptor, listen, stop, url
from tests.harness.concurrency import until


class Greeting(Protocol):
    def connectionMade(self):
        self.transport.loseConnection()
        self.factory.served.callback(None)


@pytest.fixture
def factory():
    factory = Factory.forProtocol(Greeting)
    factory.noisy = False
    factory.served = Deferred()
    return factory


def test_ordinary_file_at_the_path_of_a_socket_is_not_replaced(reactor, place, factory):
    """A mistyped path of a unix socket gives an error, and the file stays."""
    file = place / "notes.txt"
    file.write_text("precious")
    with pytest.raises(FatalError, match="Address already in use"):
        listen(reactor, f"unix:{file}", factory)
    assert file.read_text() == "precious"


async def test_unused_unix_socket_is_replaced(reactor, place, factory):
    """A killed service leaves one behind."""
    path = place / "http.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    await stop(reactor, listen(reactor, f"unix:{path}", factory))
    assert not path.exists()


@pytest.mark.parametrize("backlog", [9, 0])
def test_unix_socket_of_another_program_is_not_replaced(reactor, place, factory, backlog):
    """A second attempt and a full backlog change nothing. systemd keeps no lock file beside its socket."""
    path = place / "http.sock"
    with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as client:
        other.bind(str(path))
        other.listen(backlog)
        client.connect(str(path))
        for _ in range(2):
            with pytest.raises(FatalError, match="Address already in use"):
                listen(reactor, f"unix:{path}", factory)
        assert [*place.iterdir()] == [path]


@pytest.mark.parametrize(("given", "mode"), [("", 0o660), (":mode=600", 0o600), (":mode=666:backlog=9", 0o666)])
async def test_unix_socket_has_mode_660_by_default(reactor, place, factory, given, mode):
    """Peers there are trusted for addresses of clients. The description may set another mode."""
    path = place / "http.sock"
    port = listen(reactor, f"unix:{path}{given}", factory)
    try:
        assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        await stop(reactor, port)


async def test_closing_port_accepts_waiting_connections(reactor, factory):
    """Connections that the kernel has already made are served instead of reset."""
    port = listen(reactor, "tcp:0:interface=127.0.0.1", factory)
    address = ("127.0.0.1", port.getHost().port)
    with socket.create_connection(address) as client:
        await stop(reactor, port)
        assert factory.served.called
        assert await deferToThread(client.recv, 1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


async def test_connections_wait_for_file_descriptors(reactor, factory):
    """A process with one descriptor left drops one connection, and accepts the others when it has more."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        clients = [socket.create_connection(listening.getsockname()) for _ in range(10)]
        acceptor = Acceptor(reactor, listening.dup(), factory)
    acceptor.numberAccepts = len(clients)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, hard))
    try:
        acceptor.doRead()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    acceptor.numberAccepts = 1
    cut = 0
    for client in clients:
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            cut += client.recv(1) == b""
    assert cut == 1
    await factory.served
    await acceptor.stopListening()
    for client in clients:
        client.close()


@pytest.mark.parametrize("kind", ["tcp:0:interface=127.0.0.1", "unix:{place}/socket"])
async def test_shortage_of_file_descriptors_is_one_line(reactor, factory, place, kind):
    """Twisted closes the connections that it can't accept, and has three lines for each."""
    port = listen(reactor, kind.format(place=place), factory)
    clients = [socket.socket(port.socket.family) for _ in range(20)]
    for client in clients:
        client.connect(port.socket.getsockname())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        with capturedLogs() as events:
            for _ in range(5):
                port.doRead()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    said = [formatEvent(event) for event in events]
    assert [text for text in said if "EMFILE" in text or "accept" in text] == [
        "can't accept connections: Too many open files"
    ]
    for client in clients:
        client.close()
    await port.stopListening()


async def test_yielding_process_accepts_what_others_leave(reactor, factory):
    """While another process accepts, it gets all connections; without it, each is accepted after a moment."""
    served = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        old, new = (Acceptor(reactor, listening.dup(), _Counting(served, name)) for name in ("old", "new"))
    old.gives_way = True
    clients = [socket.create_connection(address) for _ in range(20)]
    await until(reactor, lambda: len(served) == 20)
    assert served == ["new"] * 20
    await new.stopListening()
    clients += [socket.create_connection(address) for _ in range(20)]
    await until(reactor, lambda: len(served) == 40)
    assert served[20:] == ["old"] * 20
    clients.append(socket.create_connection(address))
    await stop(reactor, old)
    assert len(served) == 40
    for client in clients:
        client.close()


class _Counting(Factory):
    """A protocol that notes each connection under the name of its listener, and closes it."""

    noisy = False

    def __init__(self, served, name):
        self.served, self.name = served, name

    def buildProtocol(self, address):
        self.served.append(self.name)


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("tcp:0", "http://127.0.0.1:{port}"),
        ("tcp:0:interface=127.0.0.2", "http://127.0.0.2:{port}"),
        ("unix:{place}/http.sock", None),
    ],
)
async def test_endpoint_has_a_url(reactor, place, endpoint, expected):
    """A client on this machine can use it; a unix socket has none."""
    description = endpoint.format(place=place)
    port = listen(reactor, description, Factory())
    try:
        assert url(port, description) == (expected and expected.format(port=port.getHost().port))
    finally:
        await port.stopListening()


@pytest.mark.parametrize("host", ["::", "::1"])
def test_url_of_an_ipv6_endpoint_has_brackets(host):
    """RFC 3986 §3.2.2 requires them; a TLS endpoint has https."""
    port = SimpleNamespace(getHost=lambda: IPv6Address("TCP", host, 443))
    assert url(port, "ssl:443:…") == "https://[::1]:443"
