"""Requests that RFC 9112 calls invalid end their connection; unusual ones work."""

import pytest
from twisted.internet import defer

from tests.wire.bench import Bench
from tests.wire.cases import HEALTH, LAST, MALFORMED, UNUSUAL
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
