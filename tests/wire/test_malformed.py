"""Requests that RFC 9112 calls invalid end their connection; unusual ones work."""

import pytest
from twisted.internet import defer
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.logger import formatEvent, globalLogPublisher

from tests.wire.bench import Bench
from tests.wire.cases import GET, HEALTH, LAST, MALFORMED, UNUSUAL
from tests.wire.sockets import parse


@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_request_ends_the_connection(request_bytes):
    """An invalid request gets one 400, however it arrives, and the bytes after it are ignored."""
    data = request_bytes + HEALTH + LAST
    for piece in (1, 7, len(data)) if len(data) < 10_000 else (1000, len(data)):
        channel, transport = Bench().connect()
        for at in range(0, len(data), piece):
            channel.dataReceived(data[at : at + piece])
        (answer,) = parse(transport.value())
        assert (answer.status, answer.error, answer.headers["connection"]) == (400, "bad request", "close")
        assert transport.closing


@pytest.mark.parametrize("name", ["bare LF everywhere", "bare CR everywhere", "bare LF before", "chunk size bare LF"])
def test_bare_line_end_is_refused_immediately(name):
    """A client with other line ends learns so before the deadline of an endless line."""
    _, transport = Bench().connect(MALFORMED[name])
    assert [answer.status for answer in parse(transport.value())] == [400]


async def test_malformed_request_ends_a_real_connection(talk):
    """Closing takes time with sockets of the whole service."""
    ends = await defer.gatherResults(
        [defer.ensureDeferred(talk(data + HEALTH + LAST)) for data in MALFORMED.values()], consumeErrors=True
    )
    assert {len(answers) for answers in ends} == {1}
    assert {(answer.status, answer.error) for (answer,) in ends} == {(400, "bad request")}


@pytest.mark.parametrize("lines", [b"deflate, Chunked", b"gzip\r\nTransfer-Encoding: chunked", b"a, b,chunked"])
def test_unknown_transfer_coding_gets_501(lines):
    """The length is known if `chunked` is the last coding, but the service can't decode the others."""
    _, transport = Bench().connect(GET + b"Transfer-Encoding: %b\r\n\r\n0\r\n\r\n" % lines + HEALTH)
    (answer,) = parse(transport.value())
    assert (answer.status, answer.headers["error-code"], answer.headers["connection"]) == (
        501,
        "transfer_encoding",
        "close",
    )


@pytest.mark.parametrize("request_bytes", UNUSUAL)
def test_unusual_but_valid_request_is_answered(request_bytes):
    """The next request is answered too, however both arrive."""
    data = request_bytes + LAST
    for piece in (7, len(data)):
        channel, transport = Bench().connect()
        for at in range(0, len(data), piece):
            channel.dataReceived(data[at : at + piece])
        assert [answer.status for answer in parse(transport.value())] == [200, 200]


async def test_real_connection_answers_unusual_but_valid_requests(talk):
    """The whole service reads headers that the bench ignores."""
    for data in UNUSUAL:
        assert [answer.status for answer in await talk(data + LAST)] == [200, 200]


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        (IPv4Address("TCP", "192.0.2.7", 1), "192.0.2.7"),
        (IPv6Address("TCP", "::ffff:192.0.2.7", 1), "192.0.2.7"),
        (UNIXAddress(None), "unix"),
    ],
)
@pytest.mark.parametrize("data", [b"nonsense\r\n", b"\x16\x03\x01\x02\x00\x01\x00\r\n", b"x" * 20_000])
def test_refused_connection_is_logged_with_the_id_of_its_answer(data, peer, name):
    """Before the line of a request, the client has the same name as in lines of requests."""
    lines = []

    def observe(event):
        if "refused" in event["log_format"]:
            lines.append(event)

    globalLogPublisher.addObserver(observe)
    try:
        _, transport = Bench().connect(data, peer=peer)
    finally:
        globalLogPublisher.removeObserver(observe)
    (answer,) = parse(transport.value())
    (line,) = lines
    assert formatEvent(line).startswith(f"{name} refused: {answer.status} {answer.error} ")
    assert line["request_id"] == answer.headers["x-request-id"] != ""
