"""Streams of events on connections: how they are written, bounded and ended (docs/live.md)."""

import pytest
from twisted.internet.task import Clock

from solisync.web.wire.reply import Reply
from solisync.web.wire.turns import SLICE_SECONDS, Slices
from tests.wire.bench import Streamed
from tests.wire.sockets import turn

ASK = b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def stream(bench):
    """An open stream: its channel, its transport and its body."""
    channel, transport = bench.connect(ASK)
    transport.clear()
    return channel, transport, bench.pages.streams[-1]


def test_a_stream_is_sent_in_chunks(bench, stream):
    """Each write is a chunk; the end is the last one, and then the connection closes."""
    _, transport, body = stream
    body.outlet.write(b"event: a\n\n")
    assert transport.value() == b"a\r\nevent: a\n\n\r\n"
    transport.clear()
    body.outlet.end(b"bye")
    assert transport.value() == b"3\r\nbye\r\n0\r\n\r\n"
    assert transport.closing == "close"


def test_the_head_of_a_stream_closes_the_connection(bench):
    """No other request can follow."""
    _, transport = bench.connect(ASK)
    head = transport.value().decode()
    assert "Connection: close" in head
    assert "Transfer-Encoding: chunked" in head
    assert "Content-Length" not in head


def test_http_1_0_gets_no_chunks(bench):
    """Its stream ends with the connection."""
    _, transport = bench.connect(b"GET /stream HTTP/1.0\r\n\r\n")
    assert "Transfer-Encoding" not in transport.value().decode()
    transport.clear()
    bench.pages.streams[-1].outlet.end(b"bye")
    assert transport.value() == b"bye"


def test_a_client_that_reads_nothing_is_cut_after_30_s(bench, stream):
    """Meanwhile the outlet is full."""
    _, transport, body = stream
    transport.full = True
    body.outlet.write(b"x")
    assert body.outlet.full
    bench.clock.advance(29.9)
    assert transport.closing is None
    bench.clock.advance(0.1)
    assert transport.closing == "abort"


def test_a_client_that_reads_on_is_told_what_waited(bench, stream):
    """The body hears that the outlet is not full any more; there is no time limit then, however long it lasts."""
    _, transport, body = stream
    transport.full = True
    body.outlet.write(b"x")
    transport.full = False
    transport.drained()
    assert not body.outlet.full
    assert body.drained_times == 1
    bench.clock.advance(3_600)
    assert transport.closing is None


def test_a_full_stream_is_cut_at_its_end(bench, stream):
    """Nobody waits for a client that doesn't read."""
    _, transport, body = stream
    transport.full = True
    body.outlet.write(b"x")
    body.outlet.end(b"bye")
    assert transport.closing == "abort"


def test_what_a_client_sends_into_a_stream_is_dropped(bench, stream):
    """Also a request, which nobody will answer; above 8 MiB the connection is cut."""
    channel, transport, body = stream
    for _ in range(8):
        channel.dataReceived(b"GET /now HTTP/1.1\r\nHost: a\r\n\r\n" + bytes(2**20 - 100))
    assert (transport.value(), transport.closing) == (b"", None)
    channel.dataReceived(bytes(2**20))
    assert transport.closing == "abort"
    assert body.end is None


def test_requests_sent_together_with_that_for_a_stream_are_dropped(bench):
    """The stream is the last answer of its connection: those before it are answered, those behind it never."""
    now = b"GET /now HTTP/1.1\r\nHost: a\r\n\r\n"
    channel, transport = bench.connect(now + ASK + now + ASK)
    bench.clock.advance(0)
    assert transport.value().count(b"HTTP/1.1 200") == 2
    assert len(bench.pages.streams) == 1
    transport.clear()
    for _ in range(100):
        channel.dataReceived(now)
    bench.clock.advance(0)
    bench.pages.streams[-1].outlet.write(b"event: a\n\n")
    assert transport.value() == b"a\r\nevent: a\n\n\r\n"


def test_the_body_hears_of_the_end_of_the_connection(bench, stream):
    """Whether the client has left, or did not read."""
    channel, _, body = stream
    bench.disconnect(channel)
    assert body.end == "left"
    other, transport = bench.connect(ASK)
    unread = bench.pages.streams[-1]
    transport.full = True
    unread.outlet.write(b"x")
    bench.disconnect(other)
    assert unread.end == "unread"


def test_a_stream_ends_when_its_client_has_gone_before_the_answer(bench):
    """The body hears that the client has left, so it keeps no place."""
    channel, _ = bench.connect(ASK.replace(b"/stream", b"/later"))
    bench.disconnect(channel)
    body = Streamed()
    bench.pages.waiting[-1].answer(Reply(stream=body, content_type="text/event-stream"))
    assert body.end == "left"


def test_a_stream_leaves_nothing_in_the_reactor(bench, stream):
    """No timer of its own: those of all streams are one (solisync.events.stream_upkeep)."""
    assert not bench.clock.getDelayedCalls()


def test_streams_that_end_at_once_share_the_turns_of_the_reactor():
    """Once the ends of a turn have taken their share of it, the others wait for the next, in order."""
    clock, ended = Clock(), []
    ends = Slices(reactor=clock)

    def end(number):
        clock.rightNow += SLICE_SECONDS / 2  # what it takes
        ended.append(number)

    for number in range(5):
        ends.run(lambda number=number: end(number))
    assert ended == [0, 1]
    clock.advance(0)
    assert ended == [0, 1, 2, 3, 4]
    assert not clock.getDelayedCalls()


async def test_a_half_closed_stream_goes_on(server, listen):
    """A client may close its sending half; it is sent a sign of life, which would be reset if it had hung up."""
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    stream.transport.loseWriteConnection()
    await stream.until(lambda: stream.heartbeats)
    await ann.delete_account()
    assert await stream.ended() == "account_deleted"
    await turn()
