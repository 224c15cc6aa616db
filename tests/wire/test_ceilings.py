"""Limits of bodies and headers, applied before they are read (docs/security.md "Bounds")."""

import json

import pytest

from solisync.rules.shapes import MAX_BODY
from solisync.web.wire.reply import Abandoned
from tests.harness.constants import PASSWORD
from tests.wire.bench import Bench
from tests.wire.cases import GET, LAST
from tests.wire.sockets import parse, post

TOO_LARGE = "request body must be at most 1 MB"


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/auth/login"), ("GET", "/health"), ("POST", "/nope"), ("GET", "/api/me"), ("OPTIONS", "/health")],
)
async def test_body_is_refused_before_it_is_sent(talk, method, path):
    """A Content-Length over the limit gets 413 immediately, on every path, and never 100."""
    for length in (str(MAX_BODY + 1), "9" * 19, "9" * 5000, "0" * 30 + "1048577"):
        for expect in ("", "Expect: 100-continue\r\n"):
            (answer,) = await talk(post(path, f"Content-Length: {length}\r\n{expect}", method))
            assert (answer.status, answer.error, answer.headers["connection"]) == (413, TOO_LARGE, "close")


@pytest.mark.parametrize(("method", "path"), [("POST", "/api/auth/login"), ("GET", "/health"), ("POST", "/nope")])
async def test_chunked_body_is_refused_while_it_arrives(talk, method, path):
    """Endless chunks are cut off once they exceed the limit."""
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    (answer,) = await talk(post(path, "Transfer-Encoding: chunked\r\n", method) + chunk * 40)
    assert (answer.status, answer.error) == (413, TOO_LARGE)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("size", "status"), [(MAX_BODY, 200), (MAX_BODY + 1, 413)])
def test_limit_of_a_body_is_exact(bench, size, status, chunked):
    """1,048,576 bytes pass and one more doesn't, with a Content-Length or in chunks."""
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % size
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size) if chunked else b"x" * size
    channel, transport = bench.connect(b"POST / HTTP/1.1\r\nHost: a\r\n%b\r\n\r\n" % framing)
    for at in range(0, len(body), 65536):
        channel.dataReceived(body[at : at + 65536])
    (answer,) = parse(transport.value())
    assert answer.status == status
    assert answer.error == TOO_LARGE if status == 413 else answer.body == str(size).encode()


def test_route_may_have_its_own_error_for_a_large_body():
    """The route is found by method and path, however the target is spelled."""

    def admit(request, size):
        assert (request.method, request.path) == (b"PUT", b"/a")
        raise Abandoned("avatar_too_large", "too large a")

    bench = Bench(admit=admit)
    for target in (b"/a", b"/a?b", b"http://h/a", b"http://h:80/a?/b"):
        _, transport = bench.connect(b"PUT %b HTTP/1.1\r\nHost: h\r\nContent-Length: 1048577\r\n\r\n" % target)
        assert [(answer.status, answer.error) for answer in parse(transport.value())] == [(400, "too large a")]


async def test_client_that_sends_before_it_reads_gets_the_refusal(connect, shared_service):
    """The service reads and drops a refused body for a moment; closing immediately could lose the answer."""
    wire = await connect(shared_service.port)
    wire.send(post(extra="Content-Length: 2000000\r\n") + b"x" * 2_000_000)
    assert [answer.status for answer in await wire.answers()] == [413]


async def test_expect_is_answered_with_100(connect, shared_service):
    """A client that waits for 100 Continue gets it, and then its answer."""
    wire = await connect(shared_service.port)
    wire.send(post("/api/auth/refresh", "Content-Length: 2\r\nExpect: 100-Continue\r\nConnection: close\r\n"))
    await wire.until(lambda data: data == b"HTTP/1.1 100 Continue\r\n\r\n")
    wire.send(b"{}")
    assert [answer.status for answer in await wire.answers()] == [100, 400]


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data; boundary=x", "multipart/form-data", "application/x-www-form-urlencoded", "\xff", None],
)
async def test_no_body_is_parsed_as_a_form(ask, server, content_type):
    """JSON is JSON under any Content-Type, even a form's."""
    body = json.dumps({"username": "ann", "password": PASSWORD}).encode()
    answer = await ask("POST", "/api/auth/register", {"Content-Type": content_type}, body)
    assert answer.status == 200


@pytest.mark.parametrize(
    "header",
    [
        b"X-A: " + b"b" * 20_000 + b"\r\n\r\n",
        b"X-A: " + b"b" * 20_000,
        (b"X-A: " + b"b" * 1000 + b"\r\n") * 17 + b"\r\n",
        b"X-A: b\r\n" * 100 + b"\r\n",
    ],
)
async def test_header_has_a_limit(talk, header):
    """A header over 16 KiB or 100 lines is too large, whether it ends or not."""
    (answer,) = await talk(GET + header)
    assert (answer.status, answer.error) == (431, "request header too large")


@pytest.mark.parametrize(("size", "status"), [(16_384, 200), (16_385, 431)])
@pytest.mark.parametrize("lines", [1, 90])
async def test_limit_of_a_header_is_exact(talk, size, status, lines):
    """The request line and the field lines have 16,384 bytes together, without their line ends."""
    rest = size - len(LAST.replace(b"\r\n", b"")) - lines * len(b"X-A: ")
    values = [b"b" * (rest // lines)] * (lines - 1)
    values.append(b"b" * (rest - sum(map(len, values))))
    fields = b"".join(b"X-A: %b\r\n" % value for value in values)
    (answer,) = await talk(LAST[:-2] + fields + b"\r\n")
    assert answer.status == status


async def test_endless_request_line_is_too_large(talk):
    """A target of 17 KiB is a part of the header."""
    (answer,) = await talk(b"GET /" + b"a" * 17_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (answer.status, answer.error) == (431, "request header too large")
