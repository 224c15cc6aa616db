"""Heads read in one go, and heads that Twisted reads line by line, have the same results."""

import re
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.web.wire import channel as module
from solisync.web.wire.parse import MAX_HEADER_BYTES, MAX_HEADERS, read_head
from tests.harness.strategies import costly
from tests.wire.bench import Bench, admit
from tests.wire.cases import ANSWERS, GET, HEALTH, LAST, MALFORMED, UNUSUAL
from tests.wire.sockets import post

VARYING = re.compile(rb"(X-Request-Id|Date): [^\r]*")
STATE = (
    "line_mode",
    "persistent",
    "paused",
    "timeOut",
    "length",
    "_deadline",
    "_receiving",
    "_refused",
    "_dropped",
    "_handlingRequest",
    "_answered_in_turn",
    "_buffer",
    "_dataBuffer",
)

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


def decline_large(request, size):
    """Return an app's refusal of some bodies."""
    if size != 0 and request.target == b"/unwanted":
        raise BadRequest("bad_request", "unwanted")
    return admit(request, size)


def state(channel):
    """Return the state of a channel; the unread bytes of a refused one don't matter."""
    return [getattr(channel, name) for name in STATE if not (channel._refused and name == "_buffer")]


def talk(pieces):
    """Return everything that is visible of a conversation, from outside and from inside."""
    bench = Bench(admit=decline_large, cors_origins=frozenset(["https://a"]))
    seen = []

    def render(request):
        headers = sorted((name.lower(), values) for name, values in request.requestHeaders.getAllRawHeaders())
        assert all(request.values(name) == values for name, values in headers)
        body = request.body.read() if request.body.unwanted is None else None
        seen.append((request.method, request.uri, request.path, request.target, request.clientproto, headers, body))
        return type(bench.pages).render(bench.pages, request)

    bench.pages.render, states = render, []
    channel, transport = bench.connect()
    for piece in pieces:
        if not transport.disconnected:
            channel.dataReceived(piece)
        bench.clock.advance(1)
        states.append([*state(channel), len(channel.requests), transport.producerState])
    while bench.pages.waiting:
        bench.pages.answer()
        bench.clock.advance(0)
    states.append(state(channel))
    if not transport.disconnected:
        bench.clock.advance(5)
        states.append(transport.closing)
    bench.disconnect(channel)
    assert not bench.clock.getDelayedCalls()
    return VARYING.sub(b"", transport.value()), transport.closing, seen, states


@costly(400)
@given(conversations())
@example([HEALTH * 40])
@example([LAST + MALFORMED["CL and TE"]])
@example([b"\r\n" + HEALTH * 2, b"\r\n" + HEALTH])
@example([GET + b"X: y\r\n" * (MAX_HEADERS - 1) + b"\r\n" + HEALTH])
@example([GET + b"X: y\r\n" * MAX_HEADERS + b"\r\n" + HEALTH])
@example([FIVE, b"hello" + HEALTH])
def test_head_read_in_one_go_equals_one_read_line_by_line(pieces):
    """Replies, requests, deadlines and the remaining bytes are the same, however requests arrive."""
    quick = talk(pieces)
    with patch.object(module, "read_head", lambda data: None):
        assert talk(pieces) == quick


def test_ordinary_heads_are_read_in_one_go():
    """Other tests wouldn't notice if no head were read in one go, or one over a limit."""
    long = b"X: " + b"y" * (MAX_HEADER_BYTES - len(GET) - 7) + b"\r\n\r\n"
    for data in (HEALTH, HEALTH + b"rest", GET + b"X: y\r\n" * (MAX_HEADERS - 1) + b"\r\n", GET + long):
        assert read_head(data).end == data.index(b"\r\n\r\n") + 4
    for data in (HEALTH[:-1], GET + b"X: y\r\n" * MAX_HEADERS + b"\r\n", GET + b"Y" + long, *MALFORMED.values()):
        head = read_head(data)
        assert head is None or b"\r\n\r\n" in data[:-4]
