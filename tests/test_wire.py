"""The wire, byte by byte (contract §0, RFC 9112): ceilings, deadlines, malformed requests, headers, draining.

These tests speak through sockets of their own because no HTTP client would send most of what they send. Deadlines are
tested on the site alone, in memory and with a clock of the test's own.
"""

import json
from ipaddress import ip_address, ip_network

import pytest
import pytest_twisted
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import defer, ssl, task
from twisted.internet.address import IPv4Address, UNIXAddress
from twisted.internet.endpoints import SSL4ClientEndpoint, TCP4ClientEndpoint, UNIXClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError, ConnectionDone, ConnectionRefusedError
from twisted.internet.protocol import Protocol
from twisted.internet.testing import StringTransport
from twisted.logger import LogLevel, globalLogPublisher
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from solisync.client_address import bucket, client_address, parse_address
from solisync.web.channel import MAX_BODY, PIECE_BYTES
from solisync.web.reply import Refusal, Reply
from solisync.web.site import Site
from tests.conftest import PASSWORD, new_address, start

ORIGIN = "https://game.example"
HEALTH = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
TOO_LARGE = "request body must be at most 1 MB"


# Sockets.


class Wire(Protocol):
    """A connection that keeps all that it is sent."""

    def __init__(self):
        self.received = b""
        self.closed = defer.Deferred()
        self._waiting = []

    def dataReceived(self, data):
        self.received += data
        for enough, waiting in list(self._waiting):
            if enough(self.received):
                self._waiting.remove((enough, waiting))
                waiting.callback(None)

    def connectionLost(self, reason):
        self.closed.callback(None)

    def send(self, data):
        self.transport.write(data)

    def until(self, enough):
        """Fires when `enough` says so of what has been received."""
        waiting = defer.Deferred()
        if enough(self.received):
            waiting.callback(None)
        else:
            self._waiting.append((enough, waiting))
        return waiting

    async def answers(self, head=False):
        """All answers, once the other side has closed."""
        await self.closed
        return parse(self.received, head=head)


async def turn():
    """Let the reactor do what is due."""
    from twisted.internet import reactor

    await task.deferLater(reactor, 0)


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def error(self):
        """The error's text, after checking that there is nothing else in it."""
        assert self.headers["content-type"] == "application/json"
        decoded = json.loads(self.body)
        assert list(decoded) == ["error"]
        return decoded["error"]


def parse(data, head=False):
    """Split what came over a connection into answers; each must have a length, or a status without a body."""
    answers = []
    while data:
        top, end, data = data.partition(b"\r\n\r\n")
        assert end, f"half an answer: {top!r}"
        first, *lines = top.decode("ascii").split("\r\n")
        version, status, _ = first.split(" ", 2)
        assert version in ("HTTP/1.1", "HTTP/1.0")
        pairs = [line.split(": ", 1) for line in lines]
        headers = {name.lower(): value for name, value in pairs}
        assert len(headers) == len(pairs), f"a header twice: {lines}"
        assert "transfer-encoding" not in headers
        bodiless = int(status) in (100, 204, 304)
        assert ("content-length" in headers) != bodiless
        length = 0 if bodiless or head else int(headers["content-length"])
        assert len(data) >= length
        answers.append(Answer(int(status), headers, data[:length]))
        data = data[length:]
    return answers


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
    """Send bytes; resolves to the answers when the service has closed."""

    async def talk(data, *, port=None, head=False):
        wire = await connect(port or shared_service.port)
        wire.send(data)
        return await wire.answers(head=head)

    return talk


@pytest.fixture
def ask(talk):
    """Send one request on a connection of its own; resolves to its answer."""

    async def ask(method, path, headers=None, body=b"", *, port=None):
        lines = {"Host": "a", "Connection": "close", "Content-Length": len(body), **(headers or {})}
        fields = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        request = f"{method} {path} HTTP/1.1\r\n{fields}\r\n".encode("latin-1") + body
        (answer,) = await talk(request, port=port, head=method == "HEAD")
        return answer

    return ask


@pytest.fixture(autouse=True)
def warnings():
    """What is logged as a warning during the test, of which nothing may be a failure."""
    seen = []

    def observe(event):
        if event["log_level"] >= LogLevel.warn:
            seen.append(event)

    globalLogPublisher.addObserver(observe)
    yield seen
    globalLogPublisher.removeObserver(observe)
    assert not [event for event in seen if "log_failure" in event or "failure" in event]  # the second of old log.err


@pytest.fixture(scope="module")
def cors(reactor, shared_dsn):
    """A service that a browser game at ORIGIN may use."""
    settings = {"SOLISYNC_CORS_ORIGINS": f"{ORIGIN},https://other.example"}
    running = pytest_twisted.blockon(defer.Deferred.fromCoroutine(start(reactor, shared_dsn, settings=settings)))
    yield running
    pytest_twisted.blockon(running.service.stopService())


# The site alone.


class Transport(StringTransport):
    """A transport in memory that remembers how it was closed, and can be full."""

    full = False

    def __init__(self, peer=None):
        super().__init__(peerAddress=peer or IPv4Address("TCP", "192.0.2.1", 12345))

    def write(self, data):
        super().write(data)
        if self.full:
            self.producer.pauseProducing()

    def unregisterProducer(self):
        self.producer = None  # any number of times, as with real transports

    def drained(self):
        """Hand over what was sent, and ask for more."""
        sent = self.value()
        self.clear()
        self.producer.resumeProducing()
        return sent

    @property
    def closing(self):
        return "abort" if self.disconnected else "close" if self.disconnecting else None


class Pages(Resource):
    """GET /now answers at once, GET /later when told to, GET /big with 3.5 pieces; POST tells what it was sent."""

    isLeaf = True
    big = b"x" * (7 * PIECE_BYTES // 2)

    def __init__(self):
        super().__init__()
        self.waiting = []

    def render_GET(self, request):
        if request.path == b"/later":
            self.waiting.append(request)
            return NOT_DONE_YET
        if request.path == b"/broken":
            raise LookupError("no such page")
        body = self.big if request.path == b"/big" else b"{}"
        request.write(Reply(body=body).send(request))
        request.finish()
        return NOT_DONE_YET

    def render_POST(self, request):
        request.write(Reply(body=str(len(request.body())).encode()).send(request))
        request.finish()
        return NOT_DONE_YET

    def answer(self):
        request = self.waiting.pop(0)
        request.write(Reply(body=b"{}").send(request))
        request.finish()


class Bench:
    """A site whose clock the test holds, and its connections."""

    def __init__(self, **settings):
        self.clock = task.Clock()
        self.pages = Pages()
        options = {"trusted_proxies": (), "cors_origins": frozenset(), "body_refusals": {}, **settings}
        self.site = Site(self.pages, self.clock, **options)

    def connect(self, data=b"", peer=None):
        channel = self.site.buildProtocol(None)
        transport = Transport(peer)
        channel.makeConnection(transport)
        if data:
            channel.dataReceived(data)
        return channel, transport

    def disconnect(self, channel):
        channel.connectionLost(Failure(ConnectionDone()))


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    for channel in list(bench.site.channels):
        bench.disconnect(channel)
    assert not bench.clock.getDelayedCalls(), "a connection left a timer behind"


# Errors.


@pytest.mark.parametrize(
    "path",
    [
        "/nope", "/", "/api", "/api/health/", "//health", "//api//health", "/api//health", "/api/./health",
        "/api/x/../health", "/%68ealth", "/api%2Fhealth", "/health%00", "/health%20", "/%ff", "/%zz", "/%", "/%2e",
        "/HEALTH", "/health;a=b", "/api/auth/nope", "*", "http://a", "http://a//health",
    ],
)  # fmt: skip
async def test_an_unknown_path_is_not_found(ask, path):
    """What is not spelled exactly like a path of ours is unknown, whatever the method."""
    for method in ("GET", "POST", "OPTIONS", "DELETE", "get"):
        answer = await ask(method, path)
        assert (method, answer.status, answer.error) == (method, 404, "not found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "/api/me", "GET, HEAD"),
        ("get", "/api/me", "GET, HEAD"),
        ("Get", "/health", "GET, HEAD"),
        ("OPTIONS", "/api/account", "DELETE"),
        ("HEAD", "/api/account", "DELETE"),
        ("TRACE", "/health", "GET, HEAD"),
        ("X!#$%&'*+-.^_`|~1", "/health", "GET, HEAD"),
    ],
)
async def test_a_method_that_a_path_does_not_have_is_not_allowed(ask, method, path, allow):
    """A known path with another method, case included, answers 405 and names its methods."""
    answer = await ask(method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert method == "HEAD" or answer.error == "method not allowed"


async def test_what_breaks_inside_is_told_to_nobody(bench, warnings, no_lost_failures):
    """An answer that fails as a whole is a 500 without details, and a failure in the log."""
    _, transport = bench.connect(b"GET /broken HTTP/1.1\r\nHost: a\r\n\r\n")
    (answer,) = parse(transport.value())
    assert (answer.status, answer.error) == (500, "internal server error")
    assert "TwistedWeb" not in answer.headers["server"]
    assert len([event for event in warnings if event.get("log_failure")]) == 1
    warnings.clear()
    no_lost_failures.clear()


# Body ceilings.


def post(path="/api/auth/login", extra="", method="POST"):
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {new_address()}\r\n{extra}\r\n".encode()


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/auth/login"), ("GET", "/health"), ("POST", "/nope"), ("GET", "/api/me"), ("OPTIONS", "/health")],
)
async def test_a_body_is_refused_before_it_is_sent(talk, method, path):
    """A Content-Length over the ceiling answers 413 at once, on every path, and never 100."""
    for length in (str(MAX_BODY + 1), "9" * 19, "9" * 5000, "0" * 30 + "1048577"):
        for expect in ("", "Expect: 100-continue\r\n"):
            (answer,) = await talk(post(path, f"Content-Length: {length}\r\n{expect}", method))
            assert (answer.status, answer.error, answer.headers["connection"]) == (413, TOO_LARGE, "close")


@pytest.mark.parametrize(("method", "path"), [("POST", "/api/auth/login"), ("GET", "/health"), ("POST", "/nope")])
async def test_a_chunked_body_is_refused_while_it_arrives(talk, method, path):
    """Chunks without end are cut off once they are over the ceiling."""
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    (answer,) = await talk(post(path, "Transfer-Encoding: chunked\r\n", method) + chunk * 40)
    assert (answer.status, answer.error) == (413, TOO_LARGE)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("size", "status"), [(MAX_BODY, 200), (MAX_BODY + 1, 413)])
def test_the_ceiling_is_exact(bench, size, status, chunked):
    """1,048,576 bytes pass and one more does not, with a Content-Length or in chunks."""
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % size
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size) if chunked else b"x" * size
    channel, transport = bench.connect(b"POST / HTTP/1.1\r\nHost: a\r\n%b\r\n\r\n" % framing)
    for at in range(0, len(body), 65536):
        channel.dataReceived(body[at : at + 65536])
    (answer,) = parse(transport.value())
    assert answer.status == status
    assert answer.error == TOO_LARGE if status == 413 else answer.body == str(size).encode()


def test_a_route_may_have_its_own_words_for_a_large_body():
    """A route's refusal is found by its method and path, however the target is spelled."""
    bench = Bench(body_refusals={(b"PUT", b"/a"): Refusal(400, "too large a")})
    for target in (b"/a", b"/a?b", b"http://h/a", b"http://h:80/a?/b"):
        _, transport = bench.connect(b"PUT %b HTTP/1.1\r\nHost: h\r\nContent-Length: 1048577\r\n\r\n" % target)
        assert [(answer.status, answer.error) for answer in parse(transport.value())] == [(400, "too large a")]


async def test_a_client_that_sends_before_it_reads_still_learns_why(connect, shared_service):
    """A refused body is read and dropped for a moment, so that the answer is not lost with the connection."""
    wire = await connect(shared_service.port)
    wire.send(post(extra="Content-Length: 2000000\r\n") + b"x" * 2_000_000)
    assert [answer.status for answer in await wire.answers()] == [413]


async def test_expect_is_answered_by_100(connect, shared_service):
    """A client that waits for 100 Continue gets it, then its answer."""
    wire = await connect(shared_service.port)
    wire.send(post("/api/auth/refresh", "Content-Length: 2\r\nExpect: 100-Continue\r\nConnection: close\r\n"))
    await wire.until(lambda data: data == b"HTTP/1.1 100 Continue\r\n\r\n")
    wire.send(b"{}")
    assert [answer.status for answer in await wire.answers()] == [100, 400]


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data; boundary=x", "multipart/form-data", "application/x-www-form-urlencoded", "\xff", None],
)
async def test_no_body_is_parsed_as_a_form(ask, server, content_type):
    """JSON is JSON under any Content-Type, those of forms included."""
    body = json.dumps({"username": "ann", "password": PASSWORD}).encode()
    answer = await ask("POST", "/api/auth/register", {"Content-Type": content_type}, body)
    assert answer.status == 200


# Malformed requests.

GET = b"GET /health HTTP/1.1\r\nHost: a\r\n"
CHUNKED = GET + b"Transfer-Encoding: chunked\r\n\r\n"

MALFORMED = {
    "CL and TE": GET + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "TE and CL": GET + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "TE and CL 0": GET + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two CL": GET + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
    "two equal CL": GET + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "CL list": GET + b"Content-Length: 5, 5\r\n\r\nhello",
    "CL plus": GET + b"Content-Length: +5\r\n\r\nhello",
    "CL minus": GET + b"Content-Length: -5\r\n\r\nhello",
    "CL hex": GET + b"Content-Length: 0x5\r\n\r\nhello",
    "CL space": GET + b"Content-Length: 1 0\r\n\r\nhello",
    "CL underscore": GET + b"Content-Length: 1_0\r\n\r\nhello",
    "CL empty": GET + b"Content-Length:\r\n\r\n",
    "CL not ASCII": GET + b"Content-Length: \xb2\r\n\r\nhello",
    "CL letters": GET + b"Content-Length: five\r\n\r\nhello",
    "CL huge, then bad": GET + b"Content-Length: " + b"9" * 5000 + b"x\r\n\r\nhello",
    "CL name space": GET + b"Content-Length : 5\r\n\r\nhello",
    "TE identity": GET + b"Transfer-Encoding: identity\r\n\r\n",
    "TE identity and CL": GET + b"Transfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n",
    "TE gzip": GET + b"Transfer-Encoding: gzip\r\n\r\n",
    "TE gzip, chunked": GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "TE chunked, gzip": GET + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "TE chunked twice": GET + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "TE chunked, chunked": GET + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "TE quoted": GET + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "TE empty": GET + b"Transfer-Encoding:\r\n\r\n",
    "TE vertical tab": GET + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "TE name space": GET + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "TE name tab": GET + b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    "TE folded": GET + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "TE in HTTP/1.0": b"GET /health HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "folded header": GET + b"X-A: b\r\n c\r\n\r\n",
    "folded by a tab": GET + b"X-A: b\r\n\tc\r\n\r\n",
    "space before the first header": b"GET /health HTTP/1.1\r\n Host: a\r\n\r\n",
    "blank header line": GET + b" \r\n\r\n",
    "header without colon": GET + b"X-A\r\n\r\n",
    "header without name": GET + b": b\r\n\r\n",
    "header name with space": GET + b"X A: b\r\n\r\n",
    "header name not ASCII": GET + b"X-\xe9: b\r\n\r\n",
    "NUL in a name": GET + b"X\0A: b\r\n\r\n",
    "NUL in a value": GET + b"X-A: b\0c\r\n\r\n",
    "bare CR in a value": GET + b"X-A: b\rX-B: c\r\n\r\n",
    "bare LF in a value": GET + b"X-A: b\nX-B: c\r\n\r\n",
    "delete in a value": GET + b"X-A: b\x7f\r\n\r\n",
    "bell in a value": GET + b"X-A: b\x07\r\n\r\n",
    "bare LF everywhere": b"GET /health HTTP/1.1\nHost: a\n\n",
    "bare CR everywhere": b"GET /health HTTP/1.1\rHost: a\r\r",
    "bare LF before": b"\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "bare LF at the end of the header": GET + b"\n",
    "no Host": b"GET /health HTTP/1.1\r\n\r\n",
    "two Hosts": GET + b"Host: b\r\n\r\n",
    "two equal Hosts": GET + b"Host: a\r\n\r\n",
    "two Hosts in HTTP/1.0": b"GET /health HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
    "Host with a path": b"GET /health HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "Host with a user": b"GET /health HTTP/1.1\r\nHost: u@a\r\n\r\n",
    "Host with a space": b"GET /health HTTP/1.1\r\nHost: a b\r\n\r\n",
    "Host list": b"GET /health HTTP/1.1\r\nHost: a, b\r\n\r\n",
    "Host port": b"GET /health HTTP/1.1\r\nHost: a:b\r\n\r\n",
    "Host not ASCII": b"GET /health HTTP/1.1\r\nHost: \xff\r\n\r\n",
    "HTTP/0.9": b"GET /health\r\n",
    "HTTP/0.9 with a header": b"GET /health\r\nHost: a\r\n\r\n",
    "HTTP/2.0 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.2": b"GET /health HTTP/1.2\r\nHost: a\r\n\r\n",
    "HTTP/1.10": b"GET /health HTTP/1.10\r\nHost: a\r\n\r\n",
    "HTTP/01.1": b"GET /health HTTP/01.1\r\nHost: a\r\n\r\n",
    "HTTP/1": b"GET /health HTTP/1\r\nHost: a\r\n\r\n",
    "http/1.1": b"GET /health http/1.1\r\nHost: a\r\n\r\n",
    "HTTP/1.1 and more": b"GET /health HTTP/1.1 x\r\nHost: a\r\n\r\n",
    "HTTP/1.1 and a space": b"GET /health HTTP/1.1 \r\nHost: a\r\n\r\n",
    "HTTPS/1.1": b"GET /health HTTPS/1.1\r\nHost: a\r\n\r\n",
    "two spaces": b"GET  /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "a tab for a space": b"GET\t/health HTTP/1.1\r\nHost: a\r\n\r\n",
    "a space before": b" GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "two empty lines before": b"\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "no method": b"/health HTTP/1.1\r\nHost: a\r\n\r\n",
    "bad method": b"G(T /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "method not ASCII": b"G\xc9T /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n",
    "target with a tab": b"GET /health?\t HTTP/1.1\r\nHost: a\r\n\r\n",
    "target with NUL": b"GET /health?\0 HTTP/1.1\r\nHost: a\r\n\r\n",
    "target with delete": b"GET /health?\x7f HTTP/1.1\r\nHost: a\r\n\r\n",
    "target not ASCII": b"GET /health?\xa0 HTTP/1.1\r\nHost: a\r\n\r\n",
    "target not UTF-8": b"GET /health?\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    "target with a fragment": b"GET /health?a#b HTTP/1.1\r\nHost: a\r\n\r\n",
    "target without a slash": b"GET xhealth HTTP/1.1\r\nHost: a\r\n\r\n",
    "target that is a query": b"GET ?health HTTP/1.1\r\nHost: a\r\n\r\n",
    "authority form": b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "authority form of another method": b"GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "absolute form without a host": b"GET http:///health HTTP/1.1\r\nHost: a\r\n\r\n",
    "absolute form with a user": b"GET http://u@a/health HTTP/1.1\r\nHost: a\r\n\r\n",
    "absolute form of another scheme": b"GET ftp://a/health HTTP/1.1\r\nHost: a\r\n\r\n",
    "chunk size empty": CHUNKED + b"\r\nhello\r\n0\r\n\r\n",
    "chunk size hex prefix": CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
    "chunk size plus": CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n",
    "chunk size minus": CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
    "chunk size space": CHUNKED + b" 5\r\nhello\r\n0\r\n\r\n",
    "chunk size underscore": CHUNKED + b"0_5\r\nhello\r\n0\r\n\r\n",
    "chunk size no hex": CHUNKED + b"G\r\nhello\r\n0\r\n\r\n",
    "chunk size bare LF": CHUNKED + b"5\nhello\n0\n\n",
    "chunk too long": CHUNKED + b"4\r\nhello\r\n0\r\n\r\n",
    "chunk too short": CHUNKED + b"6\r\nhello\r\n0\r\n\r\n",
    "chunk ends with LF": CHUNKED + b"5\r\nhello\n0\r\n\r\n",
    "chunk extension without a name": CHUNKED + b"5;\r\nhello\r\n0\r\n\r\n",
    "chunk extension with LF": CHUNKED + b"5;a\n\r\nhello\r\n0\r\n\r\n",
    "chunk extension with CR": CHUNKED + b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "chunk extension endless": CHUNKED + b"5;a=" + b"b" * 2000 + b"\r\nhello\r\n0\r\n\r\n",
    "trailer without a colon": CHUNKED + b"0\r\nX-A\r\n\r\n",
    "trailer folded": CHUNKED + b"0\r\nX-A: b\r\n c\r\n\r\n",
    "trailer name with space": CHUNKED + b"0\r\nX-A : b\r\n\r\n",
    "trailer with bare LF": CHUNKED + b"0\r\nX-A: b\nX-B: c\r\n\r\n",
    "trailer ends with LF": CHUNKED + b"0\r\n\n",
    "trailers endless": CHUNKED + b"0\r\n" + b"X-A: b\r\n" * 10_000 + b"\r\n",
}


@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_malformed_ends_the_connection(request_bytes):
    """A request that RFC 9112 calls invalid gets one 400, however it arrives, and nothing after it is a request."""
    data = request_bytes + HEALTH + LAST
    for piece in (1, 7, len(data)) if len(data) < 10_000 else (1000, len(data)):
        channel, transport = Bench().connect()
        for at in range(0, len(data), piece):
            channel.dataReceived(data[at : at + piece])
        (answer,) = parse(transport.value())
        assert (answer.status, answer.error, answer.headers["connection"]) == (400, "bad request", "close")
        assert transport.closing


@pytest.mark.parametrize("name", ["bare LF everywhere", "bare CR everywhere", "bare LF before", "chunk size bare LF"])
def test_a_bare_line_end_is_refused_at_once(name):
    """A client whose lines end otherwise learns so now, not at the deadline of a line that never ends."""
    _, transport = Bench().connect(MALFORMED[name])
    assert [answer.status for answer in parse(transport.value())] == [400]


async def test_malformed_requests_end_real_connections_too(talk):
    """The same through sockets of the whole service, where closing takes time."""
    ends = await defer.gatherResults(
        [defer.ensureDeferred(talk(data + HEALTH + LAST)) for data in MALFORMED.values()], consumeErrors=True
    )
    assert {len(answers) for answers in ends} == {1}
    assert {(answer.status, answer.error) for (answer,) in ends} == {(400, "bad request")}


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\r\n" + HEALTH,
        b"GET http://b:80/health HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET HTTPS://[::1]:8080/health?x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /health?x=%ff&{}|^ HTTP/1.1\r\nHost: a:80\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhOST:\t[::1]:80 \t\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: my_host.example:\r\n\r\n",
        GET + b"X-A:\r\nX-A: \xff\xfe\tb\r\n\r\n",
        GET + b"X-Forwarded-For: \xff\r\nX-Request-Id: \xff\r\nOrigin: \xff\r\nCookie: \xff\r\n\r\n",
        GET + b"Content-Length: 0\r\n\r\n",
        GET + b"Content-Length: 0005\r\n\r\nhello",
        GET + b"Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b'005;a;b=c;d="e;f" \t;g = h\r\nhello\r\nA\r\n0123456789\r\n0;x\r\nX-A: b\r\nX-B:\r\n\r\n',
        GET + b"".join(b"X-%d: b\r\n" % number for number in range(99)) + b"\r\n",
        GET + b"X-A: " + b"b" * 16_000 + b"\r\n\r\n",
    ],
)  # fmt: skip
async def test_what_is_unusual_but_valid_works(connect, shared_service, request_bytes):
    """Valid requests in any spelling are answered, and so is the one after them, however they arrive."""
    for piece in (7, len(request_bytes)):
        wire = await connect(shared_service.port)
        for at in range(0, len(request_bytes), piece):
            wire.send(request_bytes[at : at + piece])
            await turn()
        wire.send(LAST)
        assert [answer.status for answer in await wire.answers()] == [200, 200]


@pytest.mark.parametrize(
    "header",
    [
        b"X-A: " + b"b" * 20_000 + b"\r\n\r\n",
        b"X-A: " + b"b" * 20_000,
        (b"X-A: " + b"b" * 1000 + b"\r\n") * 17 + b"\r\n",
        b"X-A: b\r\n" * 100 + b"\r\n",
    ],
)
async def test_a_header_has_a_ceiling(talk, header):
    """Over 16 KiB or 100 lines, whether it ends or not, it is too large."""
    (answer,) = await talk(GET + header)
    assert (answer.status, answer.error) == (431, "request header too large")


async def test_an_endless_request_line_is_too_large(talk):
    """A target of 17 KiB is part of the header too."""
    (answer,) = await talk(b"GET /" + b"a" * 17_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (answer.status, answer.error) == (431, "request header too large")


# Deadlines.


@pytest.mark.parametrize(
    ("beginning", "seconds"),
    [
        (b"G", 10),
        (GET, 10),
        (b"\r\n", 10),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n", 30),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFF\r\nab", 30),
    ],
)
@pytest.mark.parametrize("before", [b"", HEALTH, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"])
def test_deadlines_do_not_move(bench, before, beginning, seconds):
    """A header has 10 s and a body 30 s; neither the bytes that trickle in nor pipelining extend that."""
    channel, transport = bench.connect(before + beginning)
    sent = transport.value()
    for _ in range(seconds - 1):
        bench.clock.advance(1)
        channel.dataReceived(b"a")
    bench.clock.advance(0.9)
    assert (transport.value(), transport.closing) == (sent, None)
    bench.clock.advance(0.1)
    (answer,) = parse(transport.value()[len(sent) :])
    assert (answer.status, answer.error, answer.headers["connection"]) == (408, "request timed out", "close")
    assert transport.closing == "close"
    bench.clock.advance(2)
    assert transport.closing == "abort"


def test_a_body_has_its_time_from_the_end_of_the_header(bench):
    """9 s for the header and 29 s for the body are in time."""
    channel, transport = bench.connect(b"POST / HTTP/1.1\r\nHost: a\r\n")
    bench.clock.advance(9)
    channel.dataReceived(b"Content-Length: 1\r\n\r\n")
    bench.clock.advance(29)
    channel.dataReceived(b"x")
    assert [answer.body for answer in parse(transport.value())] == [b"1"]


def test_a_silent_connection_is_closed(bench):
    """One that has sent nothing is closed after 10 s, without an answer to a request that was never made."""
    _, transport = bench.connect()
    bench.clock.advance(9.9)
    assert not transport.closing
    bench.clock.advance(0.1)
    assert (transport.value(), transport.closing) == (b"", "close")


@pytest.mark.parametrize(
    "before", [HEALTH, HEALTH + HEALTH, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"]
)
def test_an_idle_connection_is_kept_for_a_minute(bench, before):
    """Keep-alive ends after 60 s, and each answer begins it anew."""
    channel, transport = bench.connect(before)
    bench.clock.advance(59)
    channel.dataReceived(HEALTH)
    bench.clock.advance(59)
    assert not transport.closing
    sent = transport.value()
    bench.clock.advance(1)
    assert (transport.value(), transport.closing) == (sent, "close")


def test_a_handler_takes_its_own_time(bench):
    """No deadline of the wire runs while a request is handled; the next one's begins when it is done."""
    channel, transport = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\nGET /n")
    bench.clock.advance(100)
    assert (transport.value(), transport.closing) == (b"", None)
    bench.pages.answer()
    bench.clock.advance(9)
    channel.dataReceived(b"ow HTTP/1.1\r\nHost: a\r\n\r\n")
    assert [answer.status for answer in parse(transport.value())] == [200, 200]


def test_a_client_that_reads_nothing_is_cut(bench):
    """After 30 s in which nothing of an answer was taken; a slow reader gets all of it."""
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


@pytest.mark.parametrize("ending", [b"", b"Connection: close\r\n"])
def test_a_slow_reader_gets_the_last_answer_too(bench, ending):
    """Closing waits for what is still to be sent, and is cut 30 s after nothing moves."""
    channel, transport = bench.connect()
    transport.full = True
    channel.dataReceived(b"GET /big HTTP/1.1\r\nHost: a\r\n" + ending + b"\r\n")
    bench.clock.advance(29)
    sent = transport.drained()
    bench.site.draining = True
    channel.drain()
    while transport.value():
        bench.clock.advance(29)
        assert not transport.disconnected
        sent += transport.value()
        transport.clear()
        if transport.producer is not None:
            transport.producer.resumeProducing()
    assert [answer.body for answer in parse(sent)] == [Pages.big]
    assert transport.closing == "close"


def test_pipelined_answers_wait_for_the_reader(bench):
    """While an answer is not taken, no further request is handled and nothing more is read."""
    channel, transport = bench.connect()
    transport.full = True
    channel.dataReceived(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
    assert len(transport.value()) < PIECE_BYTES + 1000
    assert transport.producerState == "paused"
    transport.full = False
    answers = parse(transport.drained() + transport.value())
    assert [answer.body for answer in answers] == [Pages.big] * 100
    assert transport.producerState == "producing"


async def test_a_real_client_that_reads_nothing_is_cut(reactor, connect):
    """The same through sockets: the service's memory holds one answer, and the connection ends."""
    bench = Bench()
    bench.pages.big = b"x" * 8_000_000
    port = reactor.listenTCP(0, bench.site, interface="127.0.0.1")
    wire = await connect(port.getHost().port)
    wire.transport.pauseProducing()
    wire.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n" * 50)
    while not any(channel._waitingForTransport for channel in bench.site.channels):
        await turn()
    while bench.site.channels:
        bench.clock.advance(30)
        await turn()
    wire.transport.resumeProducing()
    await wire.closed
    assert len(wire.received) < 8_000_000
    await port.stopListening()


async def test_a_slow_socket_gets_everything(reactor, connect):
    """Eight megabytes arrive whole and in order, though they are sent in pieces."""
    bench = Bench()
    bench.pages.big = bytes(range(256)) * 32_000
    port = reactor.listenTCP(0, bench.site, interface="127.0.0.1")
    wire = await connect(port.getHost().port)
    wire.send(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n" * 2 + b"GET /big HTTP/1.0\r\n\r\n")
    assert [answer.body for answer in await wire.answers()] == [bench.pages.big] * 3
    await port.stopListening()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from within Twisted, which makes the certificate
async def test_tls_is_no_different(reactor):
    """Over TLS, which can't be half-closed, refusals and large answers arrive whole too."""
    bench = Bench()
    certificate = ssl.KeyPair.generate(size=2048).selfSignedCert(1, CN="a")
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


# Pipelining and persistence.


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


# Headers.


@pytest.mark.parametrize("path", ["/health", "/api/me", "/api/openapi.json", "/nope", "/api/auth/login"])
async def test_head_is_get_without_a_body(ask, path):
    """HEAD has GET's status and headers, Content-Length included."""
    headers = {"X-Request-Id": "same", "X-Forwarded-For": new_address()}
    get, head = await ask("GET", path, headers), await ask("HEAD", path, headers)
    del get.headers["date"], head.headers["date"]
    assert (head.status, head.headers, head.body) == (get.status, get.headers, b"")
    assert get.body


ANSWERS = {
    "success": HEALTH,
    "not found": b"GET /nope HTTP/1.1\r\nHost: a\r\n\r\n",
    "not allowed": b"PUT /health HTTP/1.1\r\nHost: a\r\n\r\n",
    "unauthorized": b"GET /api/me HTTP/1.1\r\nHost: a\r\n\r\n",
    "malformed": b"nonsense\r\n",
    "too large": GET + b"Content-Length: 9999999\r\n\r\n",
    "header": GET + b"X: y\r\n" * 101,
}


@pytest.mark.parametrize("request_bytes", ANSWERS.values(), ids=ANSWERS.keys())
async def test_every_answer_has_the_same_headers(talk, request_bytes):
    """Server without a version, nosniff, a request id, a date, and no word of CORS where it is not set up."""
    answer, *_ = await talk(request_bytes + LAST)
    assert answer.headers["server"] == "solisync"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]
    assert answer.headers["date"].endswith("GMT")
    assert not [name for name in answer.headers if name.startswith("access-control") or name == "vary"]


@pytest.mark.parametrize("given", ["a", "A.b_c-9", "x" * 64])
async def test_a_sane_request_id_is_kept(ask, given):
    """A proxy's X-Request-Id comes back, on errors and refusals too."""
    for path, length in (("/health", 0), ("/nope", 0), ("/health", MAX_BODY + 1)):
        answer = await ask("GET", path, {"X-Request-Id": given, "Content-Length": length})
        assert answer.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a/b", "\xe9", "\xff\xfe", "a\r\nX-Request-Id: b"])
async def test_another_request_id_is_replaced(ask, given):
    """What could confuse a log is replaced by an id of our own, and so are two."""
    answer = await ask("GET", "/health", {"X-Request-Id": given})
    assert len(answer.headers["x-request-id"]) == 32


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/auth/register", b'{"username": "bob", "password": "canary password"}', 200),
        ("POST", "/api/auth/login", b"{}", 400),
        ("POST", "/api/auth/login", b'{"username": "x", "password": "canary password"}', 401),
        ("GET", "/api/auth/login", b"", 405),
        ("POST", "/api/auth/nope", b"", 404),
        ("POST", "/api/auth/login", b"x" * (MAX_BODY + 1), 413),
        ("GET", "/api/me", b"", 401),
        ("DELETE", "/api/account", b"", 401),
    ],
)
async def test_no_cache_keeps_what_is_private(ask, server, method, path, body, status):
    """Everything authenticated or under /api/auth says no-store, errors included."""
    answer = await ask(method, path, {"X-Forwarded-For": new_address()}, body)
    assert (answer.status, answer.headers["cache-control"]) == (status, "no-store")


@pytest.mark.parametrize("header", ["Bearer \xff", "Bearer", "Bearer a b", "Bearer a, Bearer b", "Basic YTpi", "\xe9"])
async def test_a_strange_authorization_is_unauthorized(ask, header):
    """Whatever bytes the header holds."""
    answer = await ask("GET", "/api/me", {"Authorization": header})
    assert (answer.status, answer.error, answer.headers["www-authenticate"]) == (401, "unauthorized", "Bearer")


# CORS.


@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - {"malformed"}))
async def test_an_allowed_origin_may_read_every_answer(talk, cors, name):
    """A configured origin is named in errors and refusals too; another one gets nothing; both vary."""
    first, rest = ANSWERS[name].split(b"\r\n", 1)
    for origin in (ORIGIN, "https://evil.example", ORIGIN.upper(), "null", "\xff"):
        field = f"\r\nOrigin: {origin}\r\n".encode("latin-1")
        answer, *_ = await talk(first + field + rest + LAST, port=cors.port)
        allowed = {name: value for name, value in answer.headers.items() if name.startswith("access-control")}
        expected = {
            "access-control-allow-origin": ORIGIN,
            "access-control-expose-headers": "Retry-After, X-Request-Id, ETag",
        }
        assert allowed == (expected if origin == ORIGIN else {})
        assert answer.headers["vary"] == "Origin"


def test_an_allowed_origin_may_read_a_timeout():
    """Also of a request that never ended."""
    bench = Bench(cors_origins=frozenset([ORIGIN]))
    channel, transport = bench.connect(f"GET / HTTP/1.1\r\nHost: a\r\nOrigin: {ORIGIN}\r\nX: y\r\n".encode())
    bench.clock.advance(10)
    (answer,) = parse(transport.value())
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (408, ORIGIN)
    bench.disconnect(channel)


@pytest.mark.parametrize(
    ("path", "methods"), [("/api/me", "GET, HEAD"), ("/api/account", "DELETE"), ("/api/auth/login", "POST")]
)
async def test_a_preflight_needs_neither_token_nor_patience(ask, cors, path, methods):
    """A known path answers any number of preflights with its methods."""
    address = new_address()
    for _ in range(12):
        answer = await ask(
            "OPTIONS",
            path,
            {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "X-Forwarded-For": address},
            port=cors.port,
        )
        assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["access-control-allow-methods"] == methods
    assert answer.headers["access-control-allow-headers"] == "Authorization, Content-Type, If-None-Match"
    assert answer.headers["access-control-max-age"] == "600"
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers
    assert "content-length" not in answer.headers


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/nope", {"Origin": ORIGIN, "Access-Control-Request-Method": "GET"}, 404),
        ("/health", {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}, 405),
        ("/health", {"Access-Control-Request-Method": "GET"}, 405),
        ("/health", {"Origin": ORIGIN}, 405),
    ],
)
async def test_what_is_no_preflight_is_refused_like_anything_else(ask, cors, path, headers, status):
    """An unknown path, an unlisted origin, or OPTIONS that asks for nothing."""
    answer = await ask("OPTIONS", path, headers, port=cors.port)
    assert answer.status == status
    assert "access-control-allow-methods" not in answer.headers


# Who the client is.

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.1", [], "203.0.113.1"),
        ("203.0.113.1", ["198.51.100.1"], "203.0.113.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.9, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.9", "198.51.100.1,10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1:443"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("10.0.0.1", ["[2001:db8::1]"], "2001:db8::1"),
        ("10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.1, nonsense, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.1, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1,"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:99999"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:" + "1" * 5000], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1%eth0"], "10.0.0.1"),
        ("10.0.0.1", ["fe80::1%eth0"], "fe80::1"),
        ("fd00::1", ["198.51.100.1"], "198.51.100.1"),
        (None, ["198.51.100.1"], "198.51.100.1"),
        (None, ["192.0.2.1, 198.51.100.1"], "198.51.100.1"),
        (None, ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        (None, [], None),
        (None, ["nonsense"], None),
    ],
)
def test_the_client_is_the_last_hop_that_is_not_ours(peer, forwarded, client):
    """X-Forwarded-For is read from the right, past trusted proxies, up to what can't be read."""
    assert client_address(peer, forwarded, PROXIES) == (client and ip_address(client))


addresses = st.ip_addresses().map(str)
spellings = st.one_of(addresses, addresses.map(lambda text: f"[{text}]:80" if ":" in text else f"{text}:80"))


@given(
    st.lists(st.one_of(spellings, st.text(max_size=30))), spellings, st.lists(st.sampled_from(["10.1.2.3", "fd00::2"]))
)
def test_what_a_client_writes_itself_changes_nothing(forged, real, proxies):
    """Whatever stands to the left of the address that our own proxy wrote is not looked at."""
    if any(parse_address(real) in network for network in PROXIES):
        return
    assert client_address("10.0.0.1", [*forged, ", ".join([real, *proxies])], PROXIES) == parse_address(real)


@given(st.lists(st.text()), st.one_of(st.none(), addresses))
def test_any_text_is_survived(forwarded, peer):
    """No header makes the reading of it fail, and the result is always something to count by."""
    assert bucket(client_address(peer, forwarded, PROXIES))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
        ("2001:db8:0:1:2:3:4:5", "2001:db8:0:1::/64"),
        ("2001:db8:0:2:2:3:4:5", "2001:db8:0:2::/64"),
    ],
)
def test_an_ipv6_client_is_its_network(address, expected):
    """IPv4 clients count one by one, IPv6 clients by /64."""
    assert bucket(parse_address(address)) == expected


async def tries(ask, count, make_headers, **options):
    return [(await ask("POST", "/api/auth/refresh", make_headers(n), b"{}", **options)).status for n in range(count)]


async def test_a_client_behind_our_proxy_can_not_change_its_name(ask, server):
    """Forged hops don't open a new rate limit; nor do other addresses of the same /64."""
    real = new_address()
    forged = await tries(ask, 11, lambda n: {"X-Forwarded-For": f"192.0.2.{n}, {real}"})
    assert forged == [400] * 10 + [429]
    roaming = await tries(ask, 11, lambda n: {"X-Forwarded-For": f"[2001:db8:77::{n:x}]:4{n}"})
    assert roaming == [400] * 10 + [429]


async def test_an_unknown_proxy_is_not_believed_and_warned_of_once(ask, reactor, shared_dsn, warnings, server):
    """Without trusted proxies the header is ignored, and one warning names the setting."""
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_TRUSTED_PROXIES": ""})
    try:
        statuses = await tries(ask, 11, lambda n: {"X-Forwarded-For": new_address()}, port=running.port)
    finally:
        await running.service.stopService()
    assert statuses == [400] * 10 + [429]
    (warning,) = [event for event in warnings if "SOLISYNC_TRUSTED_PROXIES" in event["log_format"]]
    assert warning["peer"] == "127.0.0.1"


def test_a_unix_socket_is_always_a_trusted_proxy(bench):
    """Its header is believed; without one, all who come that way count as one."""
    for header, name, bucket_name in [
        (b"", "unix", "unix"),
        (b"X-Forwarded-For: 198.51.100.1\r\n", "198.51.100.1", "198.51.100.1"),
    ]:
        channel, _ = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n" + header + b"\r\n", UNIXAddress("/s"))
        (request,) = channel.requests
        assert (request.client_name, request.client_bucket) == (name, bucket_name)
        assert not bench.site._warned


async def test_a_unix_socket_serves_and_refuses(reactor, tmp_path):
    """What holds for TCP holds for the socket that a proxy on the same machine uses."""
    bench = Bench()
    port = reactor.listenUNIX(str(tmp_path / "s"), bench.site)
    wire = await connectProtocol(UNIXClientEndpoint(reactor, str(tmp_path / "s")), Wire())
    wire.send(b"GET /big HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\n\r\nnonsense\r\n")
    assert [answer.status for answer in await wire.answers()] == [200, 400]
    await port.stopListening()


# Draining.


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
def test_what_has_begun_is_answered_and_is_the_last(bench, beginning, rest):
    """A drain waits for every request of which a byte has come, and then closes its connection."""
    channel, transport = bench.connect(beginning)
    drained = defer.Deferred.fromCoroutine(bench.site.drain(10))
    assert not transport.closing
    channel.dataReceived(rest + HEALTH)
    if bench.pages.waiting:
        bench.pages.answer()
    (answer,) = parse(transport.value())
    assert (answer.status, answer.headers["connection"], transport.closing) == (200, "close", "close")
    assert not drained.called
    bench.disconnect(channel)
    assert drained.called


def test_an_idle_connection_is_closed_at_once(bench):
    """A drain closes what has sent nothing, before or since its last answer."""
    connections = [bench.connect(), bench.connect(HEALTH)]
    drained = defer.Deferred.fromCoroutine(bench.site.drain(10))
    for channel, transport in connections:
        assert transport.closing == "close"
        assert not drained.called
        bench.disconnect(channel)
    assert drained.called


def test_a_drain_has_a_bound(bench, warnings):
    """What has not ended in time is cut, and said so."""
    _, transport = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n")
    drained = defer.Deferred.fromCoroutine(bench.site.drain(10))
    bench.clock.advance(9.9)
    assert not transport.closing
    bench.clock.advance(0.1)
    assert transport.closing == "abort"
    assert drained.called
    assert [event["count"] for event in warnings] == [1]


async def test_a_stopping_service_finishes_what_it_has_begun(reactor, connect, shared_dsn, server):
    """A running request ends whole, an idle connection is closed, a new one is refused."""
    running = await start(reactor, shared_dsn, bcrypt_cost=10)
    idle, busy = await connect(running.port), await connect(running.port)
    idle.send(HEALTH)
    await idle.until(lambda data: data.endswith(b"}"))
    body = json.dumps({"username": "ann", "password": PASSWORD}).encode()
    busy.send(post("/api/auth/register", f"Content-Length: {len(body)}\r\n") + body)
    while not any(channel._handlingRequest for channel in running.service._site.channels):
        await turn()
    stopped = running.service.stopService()
    await turn()
    with pytest.raises((ConnectionRefusedError, ConnectError)):
        await connect(running.port)
    (answer,) = await busy.answers()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    await idle.closed
    await stopped
