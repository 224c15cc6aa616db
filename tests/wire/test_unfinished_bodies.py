"""Bodies that have arrived in part: their bound, and the parts that aren't kept (docs/security.md "Bounds")."""

import pytest

from tests.wire.sockets import parse, turn

HALF = b"x" * 1000
WHOLE = 2000


def begun(target=b"/", method=b"POST", lines=b"", length=WHOLE):
    """Return a request of which half of the body has arrived."""
    framing = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
    half = b"%x\r\n%b\r\n" % (len(HALF), HALF) if length is None else HALF
    return b"%b %b HTTP/1.1\r\nHost: a\r\n%b%b\r\n\r\n%b" % (method, target, lines, framing, half)


def statuses(transport):
    return [answer.status for answer in parse(transport.value())]


@pytest.mark.parametrize("length", [WHOLE, None], ids=["with a length", "in chunks"])
def test_unfinished_bodies_share_a_bound(bench, length):
    """Above it the oldest one is refused with 503 and Retry-After, and its bytes are dropped."""
    bench.connections.unfinished.most = 3 * len(HALF)
    made = [bench.connect(begun(length=length)) for _ in range(3)]
    assert [statuses(transport) for _, transport in made] == [[], [], []]
    made[0][0].dataReceived(b"x" if length else b"1\r\nx\r\n")
    (answer,) = parse(made[0][1].value())
    assert (answer.status, answer.error, answer.headers["retry-after"]) == (503, "service unavailable", "1")
    assert answer.headers["connection"] == "close"
    assert bench.connections.unfinished.used == 2 * len(HALF)
    made += [bench.connect(begun(length=length)) for _ in range(2)]
    assert [statuses(transport) for _, transport in made] == [[503], [503], [], [], []]
    made[2][0].dataReceived(HALF if length else b"0\r\n\r\n")
    assert statuses(made[2][1]) == [200]
    assert bench.connections.unfinished.used == 2 * len(HALF)


def test_body_in_many_chunks_is_refused_once(bench):
    """Chunks behind the excessive one are dropped, and counted nowhere."""
    bench.connections.unfinished.most = len(HALF)
    _, transport = bench.connect(begun(length=None) + b"%x\r\n%b\r\n" % (len(HALF), HALF) * 5)
    assert statuses(transport) == [503]
    assert bench.connections.unfinished.used == 0


@pytest.mark.parametrize("end", ["finished", "too large", "late", "malformed", "lost"])
def test_ended_body_counts_no_more(bench, end):
    """The body was finished, refused or abandoned."""
    channel, transport = bench.connect(begun(length=None))
    assert bench.connections.unfinished.used == len(HALF)
    if end == "finished":
        channel.dataReceived(b"0\r\n\r\n")
    elif end == "too large":
        channel.dataReceived(b"100000\r\n" + b"x" * 2**20)
    elif end == "late":
        bench.clock.advance(30)
    elif end == "malformed":
        channel.dataReceived(b"nonsense\r\n")
    else:
        bench.disconnect(channel)
    assert bench.connections.unfinished.used == 0
    expected = {"finished": [200], "too large": [413], "late": [408], "malformed": [400], "lost": []}
    assert statuses(transport) == expected[end]


@pytest.mark.parametrize(
    ("method", "target", "status", "token", "length"),
    [
        ("POST", "/nope", 404, None, WHOLE),
        ("POST", "/%61pi/auth/login", 404, "nonsense", None),
        ("PUT", "/api/auth/login", 405, None, WHOLE),
        ("post", "/api/auth/login", 405, None, None),
        ("GET", "/health", 200, "nonsense", WHOLE),
        ("HEAD", "/health", 200, None, None),
        ("GET", "/api/me", 401, "nonsense", WHOLE),
        ("POST", "/api/sync/push", 401, None, WHOLE),
        ("POST", "/api/sync/push", 401, None, None),
        ("POST", "/api/sync/push", 401, "nonsense", WHOLE),
        ("POST", "/api/sync/push", 401, "nonsense", None),
        ("PUT", "/api/me/avatar", 401, "nonsense", None),
        ("POST", "/api/replays?x", 401, None, None),
        ("GET", "/", 200, None, WHOLE),
        ("POST", "/replays/x", 405, "nonsense", WHOLE),
        ("POST", "/api/session", 403, None, WHOLE),
        ("POST", "/api/session/refresh", 403, "nonsense", None),
        ("PUT", "/api/session/password", 403, None, None),
    ],
)
async def test_unread_body_is_dropped_as_it_arrives(connect, shared_service, method, target, status, token, length):
    """Unknown paths, routes without a body, bad tokens and foreign pages get the same answers at the same time.

    The answer comes after the body, of which nothing is kept.
    """
    wire = await connect(shared_service.port)
    lines = b"Connection: close\r\n"
    if token is not None:
        lines += b"Authorization: Bearer %b\r\n" % token.encode()
    wire.send(begun(target.encode(), method.encode(), lines, length))
    site = shared_service.service.site
    while not any(channel.request and channel.request.body.received for channel in site.connections.open):
        await turn()
    assert site.connections.unfinished.used == 0
    assert wire.received == b""
    wire.send(HALF if length else b"0\r\n\r\n")
    assert [answer.status for answer in await wire.answers(head=method == "HEAD")] == [status]


async def test_body_with_a_valid_token_is_kept(connect, server):
    """The bound counts bodies that a handler reads, and no others."""
    player = await server.player()
    wire = await connect(server.port)
    lines = b"Connection: close\r\nAuthorization: Bearer %b\r\n" % player.tokens.access_token.encode()
    wire.send(begun(b"/api/sync/push", lines=lines))
    site = server.service.site
    while site.connections.unfinished.used != len(HALF):
        await turn()
    wire.send(HALF)
    (answer,) = await wire.answers()
    assert (answer.status, "JSON" in answer.error) == (400, True)
    assert site.connections.unfinished.used == 0
