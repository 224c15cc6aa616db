"""The reader of heads: the same results however a head arrives, and the results of Twisted for what it accepts."""

import re

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.internet.testing import StringTransport
from twisted.web import http

from solisync.errors import BadRequest
from solisync.web.wire.parse import MAX_HEADERS
from solisync.web.wire.reply import Reply
from solisync.web.wire.request import named_method
from tests.harness.strategies import costly
from tests.wire.bench import Bench, Pages
from tests.wire.cases import ANSWERS, GET, HEALTH, LAST, MALFORMED, UNUSUAL
from tests.wire.sockets import post

VARYING = re.compile(rb"(X-Request-Id|Date): [^\r]*")

TARGETS = st.sampled_from(b"/now|/later|/unwanted|/now?a=b&c|*|http://a/now|/n%6fw|//now|/#".split(b"|"))
NAMES = st.sampled_from(
    b"Host|hOST|Content-Length|Transfer-Encoding|Connection|Expect|Cookie|X-Request-Id|X-Forwarded-For|Origin|X-A|x_a"
    b"|X A|| X|X-\xe9".split(b"|")
)
VALUES = st.sampled_from(
    b"a| a|a:80\t |a b||0|5|05| 7 |5, 5|-1|999999999999999999999|chunked|close|keep-alive, Close|100-continue|\xff|a\0"
    b"|a\rb|a\nb|a\tb|\r\n folded".split(b"|")
)
LINES = st.lists(st.tuples(NAMES, VALUES).map(b":".join), max_size=6)
HEADS = st.builds(
    lambda method, target, version, lines: (
        b"%b %b %b\r\n%b\r\n\r\n" % (method, target, version, b"\r\n".join([b"Host: a", *lines]))
    ),
    st.sampled_from([b"GET", b"POST", b"HEAD", b"G(T"]),
    TARGETS,
    st.sampled_from([b"HTTP/1.1"] * 8 + [b"HTTP/1.0", b"HTTP/1.2", b"http/1.1"]),
    LINES,
)
FIVE = post("/now", "Content-Length: 5\r\n")
CORPUS = st.sampled_from(
    [
        *(each for each in (*MALFORMED.values(), *UNUSUAL, *ANSWERS.values()) if len(each) < 20_000),
        FIVE + b"hello",
        FIVE + b"hel",
        post("/now", "Transfer-Encoding: chunked\r\n") + b"5\r\nhello\r\n0\r\n\r\n",
        b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n",
    ]
)


@st.composite
def damaged(draw):
    """Generate a request of the corpus with some bytes replaced, removed or added."""
    data = draw(CORPUS | HEADS)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        data = (
            data[:at]
            + draw(st.binary(max_size=2) | st.sampled_from([b"\r\n", b"\n", b":", b" "]))
            + data[at + draw(st.integers(0, 2)) :]
        )
    return data


@st.composite
def conversations(draw):
    """Generate the bytes of several requests, cut anywhere."""
    data = b"".join(draw(st.lists(CORPUS | HEADS | damaged(), min_size=1, max_size=4)))
    cuts = draw(st.just([]) | st.lists(st.integers(0, len(data)), max_size=5).map(sorted))
    return [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def shown(method, uri, version, headers, body):
    """Return a request with its fields in the order of their names."""
    return method, uri, version, sorted((name.lower(), value) for name, values in headers for value in values), body


def talk(pieces):
    """Return the replies, how the connection ends, and the requests of a conversation."""
    bench, seen = Bench(cors_origins=frozenset(["https://a"])), []

    def admit(request, size):
        if size != 0 and request.path == b"/unwanted":
            raise BadRequest("bad_request", "unwanted")
        Pages.admit(bench.pages, request, size)

    def render(request):
        body = request.body.read() if request.body.unwanted is None else None
        seen.append(shown(request.method, request.uri, request.version, request.given.items(), body))
        Pages.render(bench.pages, request)

    bench.pages.admit, bench.pages.render = admit, render
    channel, transport = bench.connect()
    for piece in pieces:
        if not transport.disconnected:
            channel.dataReceived(piece)
        bench.clock.advance(0.1)
    while bench.pages.waiting:
        bench.pages.answer()
        bench.clock.advance(0)
    bench.disconnect(channel)
    assert not bench.clock.getDelayedCalls()
    return VARYING.sub(b"", transport.value()), transport.closing, seen


@costly(400)
@given(conversations())
@example([HEALTH * 40])
@example([LAST + MALFORMED["CL and TE"]])
@example([b"\r\n" + HEALTH * 2, b"\r\n" + HEALTH])
@example([GET + b"X: y\r\n" * (MAX_HEADERS - 1) + b"\r\n" + HEALTH])
@example([GET + b"X: y\r\n" * MAX_HEADERS + b"\r\n" + HEALTH])
@example([FIVE, b"hello" + HEALTH])
def test_conversation_has_the_same_replies_however_it_arrives(pieces):
    assert talk(pieces) == talk([b"".join(pieces)])


def read_by_twisted(data):
    """Return the requests that Twisted's server reads in the data."""
    seen = []

    class Stock(http.Request):
        def process(self):
            headers = self.requestHeaders.getAllRawHeaders()
            method = named_method(self.method)
            seen.append(shown(method, self.uri, self.clientproto, headers, self.content.read()))
            self.finish()

    channel = http.HTTPChannel()
    channel.requestFactory, channel.callLater = Stock, lambda *_: None
    channel.makeConnection(StringTransport())
    channel.dataReceived(data)
    channel.setTimeout(None)
    return seen


@costly(400)
@given(st.lists(CORPUS | HEADS | damaged(), min_size=1, max_size=4).map(b"".join))
@example(b"aGET /now HTTP/1.1\r\nHost: a\r\n\r\n")
def test_requests_are_those_that_twisted_reads(data):
    """Twisted's server, which accepts more, reads the same requests as this one as long as this one accepts them."""
    bench, seen = Bench(), []

    def render(request):
        seen.append(shown(request.method, request.uri, request.version, request.given.items(), request.body.read()))
        request.answer(Reply(body=b"{}"))

    bench.pages.render = render
    channel, _ = bench.connect(data)
    bench.clock.advance(1)
    bench.disconnect(channel)
    assert seen == read_by_twisted(data)[: len(seen)]
