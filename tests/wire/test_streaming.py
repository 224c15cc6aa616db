"""Streams of events on connections: writing, bounds and ends (docs/live.md)."""

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


def test_stream_is_sent_in_chunks(bench, stream):
    """Each write is a chunk. After the last chunk the connection closes."""
    _, transport, body = stream
    body.outlet.write(b"event: a\n\n")
    assert transport.value() == b"a\r\nevent: a\n\n\r\n"
    transport.clear()
    body.outlet.end(b"bye")
    assert transport.value() == b"3\r\nbye\r\n0\r\n\r\n"
    assert transport.closing == "close"


def test_head_of_a_stream_closes_the_connection(bench):
    """No other request can follow."""
    _, transport = bench.connect(ASK)
    head = transport.value().decode()
    assert "Connection: close" in head
    assert "Transfer-Encoding: chunked" in head
    assert "Content-Length" not in head


def test_http_1_0_stream_has_no_chunks(bench):
    """The stream ends with the connection."""
    _, transport = bench.connect(b"GET /stream HTTP/1.0\r\n\r\n")
    assert "Transfer-Encoding" not in transport.value().decode()
    transport.clear()
    bench.pages.streams[-1].outlet.end(b"bye")
    assert transport.value() == b"bye"


def test_client_that_reads_nothing_is_cut_off_after_30_s(bench, stream):
    """The outlet is full until then."""
    _, transport, body = stream
    transport.full = True
    body.outlet.write(b"x")
    assert body.outlet.full
    bench.clock.advance(29.9)
    assert transport.closing is None
    bench.clock.advance(0.1)
    assert transport.closing == "abort"


def test_body_is_notified_when_its_client_reads_again(bench, stream):
    """A client that has read everything has no time limit."""
    _, transport, body = stream
    transport.full = True
    body.outlet.write(b"x")
    transport.full = False
    transport.drained()
    assert not body.outlet.full
    assert body.drained_times == 1
    bench.clock.advance(3_600)
    assert transport.closing is None


def test_full_stream_is_cut_off_at_its_end(bench, stream):
    """The service doesn't wait for a client that doesn't read."""
    _, transport, body = stream
    transport.full = True
    body.outlet.write(b"x")
    body.outlet.end(b"bye")
    assert transport.closing == "abort"


def test_bytes_sent_into_a_stream_are_dropped(bench, stream):
    """Requests among them get no answer. Above 8 MiB the connection is cut off."""
    channel, transport, body = stream
    for _ in range(8):
        channel.dataReceived(b"GET /now HTTP/1.1\r\nHost: a\r\n\r\n" + bytes(2**20 - 100))
    assert (transport.value(), transport.closing) == (b"", None)
    channel.dataReceived(bytes(2**20))
    assert transport.closing == "abort"
    assert body.end is None


def test_requests_behind_that_for_a_stream_are_dropped(bench):
    """The stream is the last answer of its connection; earlier requests are answered."""
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


def test_body_is_notified_of_the_end_of_the_connection(bench, stream):
    """The client has left, or didn't read."""
    channel, _, body = stream
    bench.disconnect(channel)
    assert body.end == "left"
    other, transport = bench.connect(ASK)
    unread = bench.pages.streams[-1]
    transport.full = True
    unread.outlet.write(b"x")
    bench.disconnect(other)
    assert unread.end == "unread"


def test_stream_of_a_client_that_has_left_ends_immediately(bench):
    """The body is notified, so that it keeps no place."""
    channel, _ = bench.connect(ASK.replace(b"/stream", b"/later"))
    bench.disconnect(channel)
    body = Streamed()
    bench.pages.waiting[-1].answer(Reply(stream=body, content_type="text/event-stream"))
    assert body.end == "left"


def test_stream_has_no_timer_of_its_own(bench, stream):
    """All streams share the timers of solisync.events.stream_upkeep."""
    assert not bench.clock.getDelayedCalls()


def test_simultaneous_ends_of_streams_are_spread_over_turns():
    """When the ends have used their share of a turn, the others wait for the next turn, in order."""
    clock, ended = Clock(), []
    ends = Slices(reactor=clock)

    def end(number):
        clock.rightNow += SLICE_SECONDS / 2  # the time of one end
        ended.append(number)

    for number in range(5):
        ends.run(lambda number=number: end(number))
    assert ended == [0, 1]
    clock.advance(0)
    assert ended == [0, 1, 2, 3, 4]
    assert not clock.getDelayedCalls()


async def test_half_closed_stream_continues(server, listen):
    """The client gets a heartbeat; a client that had hung up would reset the connection."""
    ann = await server.player()
    stream = await listen(server, ann)
    await stream.next()
    stream.transport.loseWriteConnection()
    await stream.until(lambda: stream.heartbeats)
    await ann.delete_account()
    assert await stream.ended() == "account_deleted"
    await turn()
