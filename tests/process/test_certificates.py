"""The certificates that an `ssl:` endpoint sends (docs/deployment.md "Checklist")."""

import os
import signal
import socket
import ssl

import pytest
from OpenSSL import SSL
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.threads import deferToThread

from solisync.errors import FatalError
from solisync.process.listening import listen, stop
from tests.harness.certificates import Issued
from tests.harness.concurrency import until
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC, start
from tests.harness.processes import free_port

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from within Twisted, which reads certificates


@pytest.fixture(scope="module")
def chain():
    """The certificates of an authority, of one below it, and of a host."""
    root = Issued("Root", is_authority=True)
    intermediate = Issued("Intermediate", root, is_authority=True)
    return root, intermediate, Issued("localhost", intermediate, is_authority=False)


@pytest.fixture
def files(place, chain):
    """The files as certbot writes them, and others that operators make of them."""
    _, intermediate, leaf = chain
    contents = {
        "privkey.pem": leaf.key_pem,
        "cert.pem": leaf.pem,
        "chain.pem": intermediate.pem,
        "fullchain.pem": leaf.pem + intermediate.pem,
        "both.pem": leaf.key_pem + leaf.pem + intermediate.pem,
        "windows.pem": (leaf.pem + b"a comment\n" + intermediate.pem).replace(b"\n", b"\r\n"),
        "broken.pem": leaf.pem + intermediate.pem[:100] + b"!" + intermediate.pem[101:],
    }
    for name, content in contents.items():
        (place / name).write_bytes(content)
    return place


def verify(port, root):
    """Connect as a client that trusts the root alone."""
    context = ssl.create_default_context(cadata=root.pem.decode("ascii"))
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        context.wrap_socket(connection, server_hostname="localhost").close()


def sent(port):
    """Return the certificates that the service sends."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        client = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), connection)
        client.set_connect_state()
        client.do_handshake()
        return client.get_peer_cert_chain(as_cryptography=True)


@pytest.mark.parametrize(
    "rest",
    [
        "privateKey={place}/privkey.pem:certKey={place}/fullchain.pem",
        "{place}/privkey.pem:{place}/fullchain.pem",
        "privateKey={place}/both.pem",
        "privateKey={place}/privkey.pem:certKey={place}/windows.pem",
        "privateKey={place}/privkey.pem:certKey={place}/cert.pem:extraCertChain={place}/chain.pem",
    ],
    ids=["fullchain", "by place", "one file", "Windows", "two files"],
)
async def test_tls_endpoint_sends_the_whole_chain(reactor, files, chain, rest):
    """A client that trusts only the root verifies the host. The service sends each certificate once."""
    root, intermediate, leaf = chain
    port = listen(reactor, f"ssl:0:interface=127.0.0.1:{rest.format(place=files)}", Factory.forProtocol(Protocol))
    try:
        await deferToThread(verify, port.getHost().port, root)
        assert await deferToThread(sent, port.getHost().port) == [leaf.certificate, intermediate.certificate]
    finally:
        await stop(reactor, port)


async def test_broken_certificate_of_a_chain_is_named(reactor, files):
    """The service doesn't start, and one line names the file."""
    listening = f"ssl:0:privateKey={files}/privkey.pem:certKey={files}/broken.pem"
    with pytest.raises(FatalError, match=r"a certificate in .*/broken\.pem can't be read$"):
        listen(reactor, listening, Factory())


async def test_file_without_a_certificate_is_refused_in_one_line(reactor, files):
    """A file may change between the check of the settings and the start of a worker."""
    (files / "fullchain.pem").write_bytes(b"half a file")
    with pytest.raises(FatalError, match=r"can't listen on ssl:0:privateKey=.*no start line"):
        listen(reactor, f"ssl:0:privateKey={files}/privkey.pem:certKey={files}/fullchain.pem", Factory())


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
async def test_reload_reads_the_certificates_again(launch, reactor, shared_dsn, files, chain, workers):
    """New connections get the new ones. Files that can't be read change nothing, and the log has the reason."""
    port, metrics = free_port(), free_port()
    options = f"interface=127.0.0.1:privateKey={files}/privkey.pem:certKey={files}/fullchain.pem"
    words = ("--workers", workers, "--metrics-listen", f"ssl:{metrics}:{options}")
    process = start(launch, *SOLISYNC, *words, dsn=shared_dsn, endpoint=f"ssl:{port}:{options}")
    root, intermediate, leaf = chain
    await until(reactor, lambda: process.log.count("the database is open") == int(workers))
    renewed = Issued("localhost", intermediate, is_authority=False)
    (files / "fullchain.pem").write_bytes(b"half a file")
    os.kill(process.pid, signal.SIGHUP)
    await until(reactor, lambda: process.log.count("keeping the old ones") == 2)
    await until(reactor, lambda: workers == "1" or "keeping the old workers" in process.log)
    for each in (port, metrics):
        assert (await deferToThread(sent, each))[0] == leaf.certificate
    (files / "privkey.pem").write_bytes(renewed.key_pem)
    (files / "fullchain.pem").write_bytes(renewed.pem + intermediate.pem)
    os.kill(process.pid, signal.SIGHUP)
    await until(reactor, lambda: process.log.count("read the certificates again, ") == 2)
    await until(reactor, lambda: workers == "1" or "replaced all workers" in process.log)
    for each in (port, metrics):
        assert await deferToThread(sent, each) == [renewed.certificate, intermediate.certificate]
        await deferToThread(verify, each, root)
    assert process.stop() == 0
    assert "Traceback" not in process.log
