"""Deadlines for headers, bodies and idle connections, on a test clock (docs/security.md "Bounds")."""

import resource
import sys

import pytest

from solisync.web.players_app import room_for_connections
from tests.wire.bench import Bench
from tests.wire.cases import GET, HEALTH
from tests.wire.sockets import parse


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
def test_deadlines_are_not_extended(bench, before, beginning, seconds):
    """A header has 10 s and a body 30 s; neither slow bytes nor pipelining extend that."""
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


def test_time_of_a_body_begins_at_the_end_of_the_header(bench):
    """A header of 9 s and a body of 29 s are in time."""
    channel, transport = bench.connect(b"POST / HTTP/1.1\r\nHost: a\r\n")
    bench.clock.advance(9)
    channel.dataReceived(b"Content-Length: 1\r\n\r\n")
    bench.clock.advance(29)
    channel.dataReceived(b"x")
    assert [answer.body for answer in parse(transport.value())] == [b"1"]


def test_silent_connection_is_closed(bench):
    """After 10 s without a byte, the connection is closed without an answer."""
    _, transport = bench.connect()
    bench.clock.advance(9.9)
    assert not transport.closing
    bench.clock.advance(0.1)
    assert (transport.value(), transport.closing) == (b"", "close")


@pytest.mark.parametrize(
    "before", [HEALTH, HEALTH + HEALTH, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"]
)
def test_idle_connection_is_kept_longer_than_announced(before):
    """Keep-alive ends after the last answer and the set time, and each answer announces a shorter one."""
    bench = Bench(idle_seconds=30)
    channel, transport = bench.connect(before)
    bench.clock.advance(29)
    channel.dataReceived(HEALTH)
    bench.clock.advance(29)
    assert not transport.closing
    sent = transport.value()
    assert {answer.headers["keep-alive"] for answer in parse(sent)} == {"timeout=25"}
    bench.clock.advance(1)
    assert (transport.value(), transport.closing) == (sent, "close")


def test_connection_without_keep_alive_announces_no_time(bench):
    for head in (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"):
        (answer,) = parse(bench.connect(head)[1].value())
        assert (answer.headers["connection"], answer.headers.get("keep-alive")) == ("close", None)


def test_longest_idle_connection_gives_way_to_a_new_one():
    """A connection that waits for an answer, or sends a request, stays, and so does one that was used later."""
    bench = Bench(most_connections=4)
    waiting, sending, used, idle = (
        bench.connect(data) for data in (b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n", HEALTH[:9], HEALTH, HEALTH)
    )
    used[0].dataReceived(HEALTH)
    transports = [transport for _, transport in (waiting, sending, used, idle)]
    bench.connect(HEALTH)
    assert [transport.closing for transport in transports] == [None, None, None, "close"]
    bench.disconnect(idle[0])
    bench.connect(HEALTH[:9])
    assert [transport.closing for transport in transports] == [None, None, "close", "close"]


def test_slow_reader_is_idle_once_its_reply_is_taken():
    """Until then, it doesn't make room for a new connection."""
    bench = Bench(most_connections=1)
    channel, transport = bench.connect()
    transport.full = True
    channel.dataReceived(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
    second = bench.connect()[0]
    assert transport.closing is None
    bench.disconnect(second)
    transport.full = False
    transport.drained()
    bench.connect()
    assert transport.closing == "close"


def test_connection_that_ends_with_its_reply_is_not_idle(bench, monkeypatch):
    """A transport may end the connection inside `loseConnection`; nothing may remember it afterwards."""
    channel, transport = bench.connect()
    monkeypatch.setattr(transport, "loseConnection", lambda: bench.disconnect(channel))
    channel.dataReceived(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert (bench.connections.open, bench.connections.idle) == (set(), {})


@pytest.mark.parametrize(
    ("limit", "room"), [(1024, 950), (20, 16), (resource.RLIM_INFINITY, sys.maxsize)], ids=["usual", "low", "none"]
)
def test_room_for_connections_leaves_descriptors_for_others(limit, room):
    """A process without a limit of open files closes no connection for another."""
    assert room_for_connections(limit, 10) == room


def test_new_connection_is_served_when_no_other_is_idle():
    bench = Bench(most_connections=1)
    first = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n")[1]
    second = bench.connect(HEALTH)[1]
    assert (first.closing, len(parse(second.value())), second.closing) == (None, 1, None)


def test_handler_has_no_deadline_on_the_wire(bench):
    """The next request's deadline begins when the handler is done."""
    channel, transport = bench.connect(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\nGET /n")
    bench.clock.advance(100)
    assert (transport.value(), transport.closing) == (b"", None)
    bench.pages.answer()
    bench.clock.advance(9)
    channel.dataReceived(b"ow HTTP/1.1\r\nHost: a\r\n\r\n")
    assert [answer.status for answer in parse(transport.value())] == [200, 200]
