"""What RFC 9112 calls invalid ends its connection; what is only unusual works."""

import pytest
from twisted.internet import defer

from tests.wire.bench import Bench
from tests.wire.cases import HEALTH, LAST, MALFORMED, UNUSUAL
from tests.wire.sockets import parse


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


@pytest.mark.parametrize("request_bytes", UNUSUAL)
def test_unusual_but_valid_request_is_answered(request_bytes):
    """So is the request after it, however both arrive."""
    data = request_bytes + LAST
    for piece in (7, len(data)):
        channel, transport = Bench().connect()
        for at in range(0, len(data), piece):
            channel.dataReceived(data[at : at + piece])
        assert [answer.status for answer in parse(transport.value())] == [200, 200]


async def test_real_connections_answer_unusual_but_valid_requests(talk):
    """The same through sockets of the whole service, which reads headers that the bench has no use for."""
    for data in UNUSUAL:
        assert [answer.status for answer in await talk(data + LAST)] == [200, 200]
