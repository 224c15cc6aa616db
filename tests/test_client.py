"""The typed client, which game tools import too."""

import subprocess
import sys

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.internet.testing import StringTransport
from twisted.web.client import ResponseFailed
from twisted.web.http_headers import Headers

import solisync.client
from solisync.client import Client, bodies, transport
from solisync.client.transport import RETRY_MOST, _retry_after
from solisync.rules.accounts import TokenPair
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD
from tests.harness.entry_points import SOLISYNC, start
from tests.harness.processes import free_port
from tests.harness.service import ready


def test_client_loads_no_database_module():
    """`import solisync.client` needs neither a driver nor the service's database code."""
    program = "import solisync.client, sys; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    unwanted = ("txpostgres", "psycopg2", "solisync.postgres", "solisync.storage", "solisync.web")
    assert [name for name in loaded if name.startswith(unwanted)] == []
    assert "solisync.client" in loaded


def test_client_documentation_begins_with_twisted():
    """A developer who uses asyncio should read that first."""
    assert "Twisted" in solisync.client.__doc__.splitlines()[0]


async def at_the_same_time(client, times):
    """Return the outcomes of simultaneous `me()`: a username, or the status and code of an error."""
    asked = DeferredList([Deferred.fromCoroutine(client.me()) for _ in range(times)], consumeErrors=True)
    return [
        result.username if succeeded else (result.value.status, result.value.code) for succeeded, result in await asked
    ]


async def test_simultaneous_calls_share_one_refresh(server):
    """Each call succeeds although its token was refused."""
    ann = await server.player()
    issued = ann.tokens
    ann.tokens = TokenPair("refused", issued.refresh_token)
    assert await at_the_same_time(ann, 5) == ["ann"] * 5
    assert ann.tokens.refresh_token not in ("refused", issued.refresh_token)
    assert len(await ann.sessions()) == 1
    ann.tokens = TokenPair("refused", ann.tokens.refresh_token)  # and the same later
    assert await at_the_same_time(ann, 2) == ["ann"] * 2


async def test_simultaneous_calls_share_a_failed_refresh(server):
    """All calls fail with its error, and the next call tries again."""
    ann = await server.player()
    spent = ann.tokens
    live = await ann.refresh()
    ann.tokens = TokenPair("refused", spent.refresh_token)
    assert await at_the_same_time(ann, 5) == [(401, "unauthorized")] * 5
    ann.tokens = TokenPair("refused", live.refresh_token)
    assert (await ann.me()).username == "ann"


async def test_cancelled_call_does_not_cancel_the_refresh(server):
    """The other calls get the tokens: a lost answer would end the session."""
    ann = await server.player()
    refreshing = [Deferred.fromCoroutine(ann.refresh()) for _ in range(2)]
    refreshing[0].addErrback(lambda failure: None)
    refreshing[0].cancel()
    assert await refreshing[1] == ann.tokens
    assert (await ann.me()).username == "ann"


async def test_login_during_a_refresh_wins(server):
    """The tokens of the refresh don't replace those of the login."""
    ann = await server.player()
    refreshing = Deferred.fromCoroutine(ann.refresh())
    issued = await ann.login("ann", PASSWORD)
    await refreshing
    assert ann.tokens == issued


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("9" * 5_000, RETRY_MOST),
        ("Fri, 20 Nov 2026 12:00:30 GMT", 30),
        ("Fri, 20 Nov 2026 11:00:00 GMT", 0),
        ("Fri, 20 Nov 2099 12:00:00 GMT", RETRY_MOST),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(text, seconds):
    """A date counts from the date of the answer. Other text counts as absent, and a day is the maximum."""
    headers = Headers({"Retry-After": [text], "Date": ["Fri, 20 Nov 2026 12:00:00 GMT"]})
    assert _retry_after(headers) == seconds


def test_retry_after_may_be_absent():
    """Most errors have none."""
    assert _retry_after(Headers()) is None


async def test_address_of_the_service_may_be_ipv6(launch, reactor, shared_dsn):
    """treq takes a host in brackets for a name, and fails; the client's requests keep the address."""
    port = free_port()
    process = start(launch, *SOLISYNC, dsn=shared_dsn, endpoint=f"tcp:{port}:interface=::1")
    client = Client(f"http://[::1]:{port}")
    await ready(reactor, client)
    assert (await client.live()).status == "ok"
    assert process.stop() == 0


class Sender(Protocol):
    """Answers each request with `answer`, and then says nothing."""

    def dataReceived(self, data):
        self.transport.write(self.factory.answer)

    def connectionMade(self):
        self.factory.open.add(self)

    def connectionLost(self, reason):
        self.factory.open.discard(self)


@pytest.fixture
def sender(reactor):
    """A server that sends what a test sets; `url` is its address, and `open` are its connections."""
    factory = Factory.forProtocol(Sender)
    factory.open = set()
    port = pytest_twisted.blockon(TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(factory))
    factory.url = f"http://127.0.0.1:{port.getHost().port}"
    yield factory
    pytest_twisted.blockon(port.stopListening())


HELLO = b'event: hello\ndata: {"server_time":"2026-11-20T20:00:00Z","revision":null}\n\n'
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
TOKENS = TokenPair("x.eyJzdWIiOiJhbm4ifQ.x", "refresh")  # of the player `ann`


def signed_in(url):
    client = Client(url)
    client.tokens = TOKENS
    return client


async def test_stream_without_heartbeats_ends(sender, reactor, monkeypatch):
    """After 60 seconds without a line, the client closes the connection."""
    monkeypatch.setattr(bodies, "SILENCE_SECONDS", 0.05)
    sender.answer = STREAM + HELLO
    events = [type(event).__name__ async for event in signed_in(sender.url).events()]
    assert events == ["HelloEvent"]
    await until(reactor, lambda: not sender.open)


async def test_stalled_body_fails_the_request(sender, reactor, monkeypatch):
    """The service sends the head and half of the body. The client can try again."""
    monkeypatch.setattr(transport, "REQUEST_SECONDS", 0.05)
    sender.answer = b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"merged":'
    client = signed_in(sender.url)
    for _ in range(2):
        with pytest.raises(ResponseFailed):
            await client.pull()
    await until(reactor, lambda: not sender.open)


async def test_slow_reader_gets_every_event(sender, reactor):
    """The connection continues after each pause."""
    sender.answer = STREAM + 2_000 * HELLO
    count = 0
    async for _ in signed_in(sender.url).events():
        count += 1
        if count % 100 == 0:
            await deferLater(reactor, 0)
        if count == 2_000:
            break
    await until(reactor, lambda: not sender.open)


async def test_piece_of_a_body_that_waits_pauses_the_connection():
    """A client that reads no events keeps at most what had arrived with the last one."""
    connection = StringTransport()

    class Response:
        def deliverBody(self, body):
            body.makeConnection(connection)
            self.body = body

    response = Response()
    pieces = bodies.read_pieces(response, 60)
    for piece in (b"a", b"b"):
        reading = Deferred.fromCoroutine(anext(pieces))
        assert connection.producerState == "producing"
        response.body.dataReceived(piece)
        assert connection.producerState == "paused"
        assert await reading == piece
    await pieces.aclose()
    assert connection.disconnecting
