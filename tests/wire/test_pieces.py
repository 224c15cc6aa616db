"""Replies that are made while they are sent: no faster than the client reads, and whole or visibly cut off."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import globalLogPublisher

from solisync.web.wire.sending import PIECE_BYTES
from tests.wire.cases import HEALTH
from tests.wire.sockets import parse

GET = b"GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n"
BIG = b"x" * (5 * PIECE_BYTES // 2)


class Source:
    """A source of pieces. It counts the pieces that were asked for, and remembers how it ended."""

    def __init__(self, *pieces):
        self._pieces = pieces
        self.asked = 0
        self.ended = None

    async def __call__(self):
        try:
            for piece in self._pieces:
                self.asked += 1
                if isinstance(piece, Deferred):
                    await piece
                elif isinstance(piece, Exception):
                    raise piece
                else:
                    yield piece
            self.ended = "whole"
        finally:
            self.ended = self.ended or "broken off"


def dechunk(data):
    """Return the header lines, the body (None without its last chunk), and the bytes after it (RFC 9112 §7.1)."""
    top, _, rest = data.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        chunk, end, rest = rest[:length], rest[length : length + 2], rest[length + 2 :]
        if length == 0:
            assert end == b"\r\n"
            return top.split(b"\r\n"), body, rest
        if len(chunk) < length:
            break
        assert end == b"\r\n"
        body += chunk
    return top.split(b"\r\n"), None, b""


def begun(bench):
    """Return the connection and transport of a client that has read the header and nothing else."""
    channel, transport = bench.connect()
    transport.full = True
    channel.dataReceived(GET)
    transport.drained()
    return channel, transport


@pytest.fixture
def accesses():
    """Collect the statuses in the access lines of the test."""
    seen = []

    def observe(event):
        if event["log_namespace"] == "solisync.web.wire.access_log" and "status" in event:
            seen.append(event["status"])

    globalLogPublisher.addObserver(observe)
    yield seen
    globalLogPublisher.removeObserver(observe)


def test_pieces_arrive_as_chunks(bench, accesses):
    """Large and small pieces arrive unchanged, and the connection serves the next request."""
    bench.pages.pieces = source = Source(b"a", BIG, b"b" * PIECE_BYTES, b"c")
    _, transport = bench.connect(GET + HEALTH)
    lines, body, rest = dechunk(transport.value())
    assert b"Transfer-Encoding: chunked" in lines
    assert not [line for line in lines if line.startswith(b"Content-Length")]
    assert body == b"a" + BIG + b"b" * PIECE_BYTES + b"c"
    assert [answer.status for answer in parse(rest)] == [200]
    assert (source.ended, accesses) == ("whole", [200, 200])
    assert not transport.closing


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_body_may_end_with_the_connection(bench, version):
    """HTTP/1.0 has no chunks. With HTTP/1.1 the connection may end after the last chunk."""
    bench.pages.pieces = Source(b"a", BIG)
    _, transport = bench.connect(b"GET /pieces HTTP/%b\r\nHost: a\r\nConnection: close\r\n\r\n" % version)
    top, _, body = transport.value().partition(b"\r\n\r\n")
    assert b"Connection: close" in top
    assert (b"Transfer-Encoding" in top) == (version == b"1.1")
    assert (body if version == b"1.0" else dechunk(transport.value())[1]) == b"a" + BIG
    assert transport.closing == "close"


def test_head_asks_for_no_piece(bench, accesses):
    """The answer has the headers of GET."""
    bench.pages.pieces = source = Source(b"a")
    _, transport = bench.connect(b"HEAD" + GET[3:])
    lines, body, _ = dechunk(transport.value())
    assert b"Transfer-Encoding: chunked" in lines
    assert (body, source.asked, accesses) == (None, 0, [200])


def test_piece_is_asked_for_when_the_client_has_taken_the_one_before(bench):
    """At most one piece waits in memory for a client that doesn't read, and it counts as unread."""
    bench.pages.pieces = source = Source(*[BIG] * 5)
    channel, transport = bench.connect()
    transport.full = True
    channel.dataReceived(GET)
    sent = b""
    while source.ended is None:
        asked = source.asked
        assert len(sent) >= (asked - 1) * len(BIG)
        assert bench.connections.unread.used <= len(BIG) + 10
        bench.clock.advance(29)
        assert source.asked == asked
        sent += transport.drained()
    while transport.value():
        sent += transport.drained()
    assert dechunk(sent)[1] == BIG * 5
    assert not transport.closing


@pytest.mark.parametrize("piece", [BIG, b"x" * 100])
def test_client_that_reads_nothing_is_cut_off(bench, accesses, piece):
    """The connection ends after 30 s, without the last chunk, and no further piece is made."""
    bench.pages.pieces = source = Source(*[piece] * 5)
    channel, transport = begun(bench)
    asked = source.asked
    bench.clock.advance(29.9)
    assert not transport.closing
    bench.clock.advance(0.1)
    assert transport.closing == "abort"
    bench.disconnect(channel)
    assert (source.asked, source.ended, accesses) == (asked, "broken off", [499])
    assert b"\r\n0\r\n" not in transport.value()


@pytest.mark.parametrize("where", ["while it is read", "while it is sent"])
def test_hang_up_ends_the_reply(bench, accesses, where):
    """The reply waits for its next piece, or for the client."""
    waiting = Deferred()
    bench.pages.pieces = source = Source(b"a", waiting, b"b") if where == "while it is read" else Source(BIG, b"b")
    channel, _ = begun(bench) if where == "while it is sent" else bench.connect(GET)
    bench.disconnect(channel)
    assert (source.ended, accesses) == ("broken off", [499])
    if where == "while it is read":
        waiting.addErrback(lambda failure: failure.trap(CancelledError))
        assert waiting.called
    assert bench.connections.unread.used == 0


def test_failing_piece_cuts_off_the_reply(bench, accesses, warnings, no_lost_failures):
    """A client can't mistake the part for the whole. The log has the failure, and 500."""
    bench.pages.pieces = Source(b"a", LookupError("gone"), b"b")
    channel, transport = bench.connect(GET + HEALTH)
    assert transport.closing == "abort"
    bench.disconnect(channel)
    assert dechunk(transport.value())[1] is None
    assert accesses == [500]
    assert ["LookupError" in failure for failure in no_lost_failures] == [True]
    no_lost_failures.clear()
    warnings.clear()


def test_oldest_unread_reply_is_cut_off_at_the_shared_bound(bench):
    """A piece counts towards the bound of all clients, however its reply is sent."""
    bench.connections.unread.most = 3 * len(BIG)
    bench.pages.pieces = Source(BIG, b"b")
    channels = []
    for _ in range(6):
        channels.append(begun(bench))
        assert bench.connections.unread.used <= 3 * len(BIG)
    assert not channels[0][0].sender._unsent
    channels[0][1].drained()
    assert channels[0][1].closing == "abort"


def test_stopping_service_finishes_the_reply(bench):
    """A drain waits for the last chunk, and then closes the connection."""
    waiting = Deferred()
    bench.pages.pieces = Source(b"a", waiting, b"b")
    channel, transport = bench.connect(GET)
    bench.connections.announce_end()
    drained = Deferred.fromCoroutine(bench.connections.drain(10))
    bench.clock.advance(5)
    assert not transport.closing
    waiting.callback(None)
    assert dechunk(transport.value())[1] == b"ab"
    assert transport.closing == "close"
    bench.disconnect(channel)
    assert drained.called


def test_stopping_service_cuts_off_a_long_reply(bench, warnings):
    """The reply ends without the last chunk when the drain's time is over."""
    bench.pages.pieces = source = Source(b"a", Deferred())
    channel, transport = bench.connect(GET)
    bench.connections.announce_end()
    Deferred.fromCoroutine(bench.connections.drain(10))
    bench.clock.pump([1, 9])
    assert transport.closing == "abort"
    bench.disconnect(channel)
    assert (source.ended, dechunk(transport.value())[1]) == ("broken off", None)
    assert [event["count"] for event in warnings] == [1]
