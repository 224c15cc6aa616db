"""Request smuggling: bytes that one reader takes for a body and another for a request (RFC 9112 §11.2).

Each case is a request with another one hidden in it. It is sent to the service itself, and through nginx, whose
clients share connections to the service: there a hidden request that is served would shift the answers of all other
clients.
"""

import re
import select
import socket
from collections import Counter

import pytest
from twisted.internet.threads import deferToThread

from tests.fire.nginx import start_nginx
from tests.harness.constants import PATIENCE
from tests.wire.cases import MALFORMED, UNUSUAL
from tests.wire.sockets import exchange, parse

PATIENCE_SECONDS = 0.3  # for the answer to a request that the other side may think is not over
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: a\r\nX-Request-Id: hidden-000\r\n\r\n"
SIZE = len(HIDDEN)
IN_CHUNK = b"%x\r\n%b\r\n0\r\n\r\n" % (SIZE, HIDDEN)


def request(fields, body=HIDDEN, first=b"POST /nope HTTP/1.1"):
    """Return a request with these lines in its header."""
    return first + b"\r\nHost: a\r\nX-Request-Id: outer-000\r\n" + fields + b"\r\n\r\n" + body


def chunked(body, fields=b""):
    """Return a request with a body in chunks."""
    return request(b"Transfer-Encoding: chunked" + fields, body)


LENGTH = b"Content-Length: %d" % SIZE
AFTER_END = b"0\r\n\r\n" + HIDDEN

INVALID = {
    "CL.TE": request(b"Content-Length: %d\r\nTransfer-Encoding: chunked" % len(AFTER_END), AFTER_END),
    "TE.CL": request(b"Transfer-Encoding: chunked\r\nContent-Length: 4", IN_CHUNK),
    "TE.0": request(b"Transfer-Encoding: chunked\r\nContent-Length: 0", IN_CHUNK),
    "TE.TE x": request(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x", IN_CHUNK),
    "TE x.TE": request(b"Transfer-Encoding: x\r\nTransfer-Encoding: chunked", IN_CHUNK),
    "TE xchunked": request(LENGTH + b"\r\nTransfer-Encoding: xchunked"),
    "TE chunkedx": request(LENGTH + b"\r\nTransfer-Encoding: chunkedx"),
    "TE chunked;q": request(LENGTH + b"\r\nTransfer-Encoding: chunked;q=1"),
    "TE leading comma": request(LENGTH + b"\r\nTransfer-Encoding: ,chunked"),
    "TE trailing comma": request(LENGTH + b"\r\nTransfer-Encoding: chunked,"),
    "TE identity, chunked": request(LENGTH + b"\r\nTransfer-Encoding: identity, chunked"),
    "TE NUL": request(LENGTH + b"\r\nTransfer-Encoding: chunked\0"),
    "TE form feed": request(LENGTH + b"\r\nTransfer-Encoding:\x0cchunked"),
    "TE no-break space": request(LENGTH + b"\r\nTransfer-Encoding:\xa0chunked"),
    "TE not ASCII": request(LENGTH + b"\r\nTransfer-Encoding: chun\xe2\x84\xaaed"),
    "TE after a bare LF": request(LENGTH + b"\r\nX-A: b\nTransfer-Encoding: chunked"),
    "TE after a bare CR": request(LENGTH + b"\r\nX-A: b\rTransfer-Encoding: chunked"),
    "TE folded away": request(LENGTH + b"\r\nX-A: b\r\n Transfer-Encoding: chunked"),
    "TE name folded": request(LENGTH + b"\r\nTransfer-Encoding\r\n : chunked"),
    "TE name NUL": request(LENGTH + b"\r\nTransfer-Encoding\0: chunked"),
    "TE name colon": request(LENGTH + b"\r\nTransfer-Encoding :: chunked"),
    "TE 1.0": request(b"Connection: keep-alive\r\nTransfer-Encoding: chunked", IN_CHUNK, b"POST /nope HTTP/1.0"),
    "CL 0 and more": request(b"Content-Length: 0\r\n" + LENGTH),
    "CL more and 0": request(LENGTH + b"\r\nContent-Length: 0"),
    "CL list": request(b"Content-Length: 0, %d" % SIZE),
    "CL list of equals": request(b"Content-Length: %d, %d" % (SIZE, SIZE)),
    "CL folded": request(b"Content-Length:\r\n %d" % SIZE),
    "CL folded list": request(b"Content-Length: 0\r\n %d" % SIZE),
    "CL semicolon": request(b"Content-Length: 0;%d" % SIZE),
    "CL point": request(b"Content-Length: %d.0" % SIZE),
    "CL exponent": request(b"Content-Length: 9e1"),
    "CL hex": request(b"Content-Length: 0x%x" % SIZE),
    "CL octal": request(b"Content-Length: 0o%o" % SIZE),
    "CL plus": request(b"Content-Length: +%d" % SIZE),
    "CL minus": request(b"Content-Length: -0"),
    "CL quoted": request(b'Content-Length: "%d"' % SIZE),
    "CL NUL": request(b"Content-Length: 0\0%d" % SIZE),
    "CL vertical tab": request(b"Content-Length: \x0b%d" % SIZE),
    "CL digits of another script": request("Content-Length: \u0663".encode()),
    "CL name space": request(b"Content-Length : %d" % SIZE),
    "CL name tab": request(b"Content-Length\t: %d" % SIZE),
    "CL after a bare LF": request(b"X-A: b\nContent-Length: %d" % SIZE),
    "CL after a bare CR": request(b"X-A: b\rContent-Length: %d" % SIZE),
    "CL before Host": b"POST /nope HTTP/1.1\r\n Content-Length: %d\r\nHost: a\r\n\r\n" % SIZE + HIDDEN,
    "CL over 64 bits": request(b"Content-Length: 18446744073709551616x"),
    "bare LF ends the header": b"POST /nope HTTP/1.1\r\nHost: a\r\n" + LENGTH + b"\n\n" + HIDDEN,
    "bare CR ends the header": b"POST /nope HTTP/1.1\r\nHost: a\r\n" + LENGTH + b"\r\r" + HIDDEN,
    "chunk size negative": chunked(b"-1\r\n" + HIDDEN),
    "chunk size comma": chunked(b"0,%x\r\n%b\r\n0\r\n\r\n" % (SIZE, HIDDEN)),
    "chunk size trailing space": chunked(b"%x \r\n%b\r\n0 \r\n\r\n" % (SIZE, HIDDEN)),
    "chunk size with bare CR": chunked(b"%x\r%b\r\n0\r\n\r\n" % (SIZE, HIDDEN)),
    "chunk extension ends with LF": chunked(b"2;\nxx\r\n%x\r\n" % SIZE + HIDDEN + b"\r\n0\r\n\r\n"),
    "chunk extension in quotes with LF": chunked(b'2;a="\n"\r\nxx\r\n0\r\n\r\n'),
    "chunk extension in quotes with CRLF": chunked(b'2;a="\r\nxx\r\n0\r\n\r\n'),
    "chunk extension NUL": chunked(b"2;a=\0\r\nxx\r\n0\r\n\r\n"),
    "chunk ends early": chunked(b"2\r\nxxx\r\n0\r\n\r\n"),
    "chunk ends with two characters": chunked(b"2\r\nxx??%x\r\n%b\r\n0\r\n\r\n" % (SIZE, HIDDEN)),
    "last chunk with bare LF": chunked(b"0\n\n" + HIDDEN),
    "last chunk, CR alone": chunked(b"0\r\n\r" + HIDDEN),
    "trailer with a bare LF": chunked(b"0\r\nX-A: b\n\r\n" + HIDDEN),
    "trailer that is a request": chunked(b"0\r\n" + HIDDEN),
    "trailer name with a space": chunked(b"0\r\nContent-Length : 5\r\n\r\n" + HIDDEN),
    "two Hosts": request(LENGTH + b"\r\nHost: b"),
    "Host after a fold": b"POST /nope HTTP/1.1\r\nX-A: b\r\n Host: a\r\n" + LENGTH + b"\r\n\r\n" + HIDDEN,
    "line end in the target": request(LENGTH, first=b"POST /nope?\r\nX: HTTP/1.1"),
    "bare CR in the target": request(LENGTH, first=b"POST /nope?\rHTTP/1.1\r HTTP/1.1"),
    "request line with a third space": request(LENGTH, first=b"POST /nope /hidden HTTP/1.1"),
    "version twice": request(LENGTH, first=b"POST /nope HTTP/1.1 HTTP/1.1"),
    "HTTP/0.9": b"GET /nope\r\n" + HIDDEN,
    "HTTP/2 preface and a frame": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]) + HIDDEN,
    "HTTP/3.0": request(LENGTH, first=b"POST /nope HTTP/3.0"),
    "tunnel": request(LENGTH, first=b"CONNECT a:80 HTTP/1.1"),
    "method with a comma": request(LENGTH, first=b"GET,POST /nope HTTP/1.1"),
    "header name in brackets": request(LENGTH + b"\r\n[x]: y"),
    "header name with a slash": request(LENGTH + b"\r\nX/Y: z"),
    "header name of UTF-8": request(LENGTH + "\r\nContent\u2011Length: 0".encode()),
    "header without a name": request(LENGTH + b"\r\n: y"),
}

VALID = {
    "POST that ignores its body": request(LENGTH),
    "GET with a body": request(LENGTH, first=b"GET /health HTTP/1.1"),
    "HEAD with a body": request(LENGTH, first=b"HEAD /health HTTP/1.1"),
    "DELETE with a body": request(LENGTH, first=b"DELETE /api/account HTTP/1.1"),
    "OPTIONS with a body": request(LENGTH, first=b"OPTIONS /health HTTP/1.1"),
    "TRACE with a body": request(LENGTH, first=b"TRACE /health HTTP/1.1"),
    "GET with a chunked body": request(b"Transfer-Encoding: chunked", IN_CHUNK, b"GET /health HTTP/1.1"),
    "unauthorized with a body": request(LENGTH, first=b"POST /api/sync/push HTTP/1.1"),
    "a hidden form": request(LENGTH + b"\r\nContent-Type: application/x-www-form-urlencoded"),
    "CL with zeros": request(b"Content-Length: 0%d" % SIZE),
    "CL and white space": request(b"Content-Length: \t %d \t" % SIZE),
    "CL_ of another name": request(LENGTH + b"\r\nContent_Length: 0"),
    "TE of another name": request(LENGTH + b"\r\nTransfer_Encoding: chunked"),
    "Content-Encoding": request(LENGTH + b"\r\nContent-Encoding: chunked"),
    "TE header": request(LENGTH + b"\r\nTE: chunked, trailers"),
    "Connection names Content-Length": request(LENGTH + b"\r\nConnection: Content-Length"),
    "Connection names Transfer-Encoding": chunked(IN_CHUNK, b"\r\nConnection: Transfer-Encoding"),
    "Connection names X-Request-Id": request(LENGTH + b"\r\nConnection: X-Request-Id, Host, X-Forwarded-For"),
    "Proxy-Connection": request(LENGTH + b"\r\nProxy-Connection: close\r\nKeep-Alive: timeout=1000"),
    "Expect without waiting": request(LENGTH + b"\r\nExpect: 100-continue"),
    "Expect in another case": request(LENGTH + b"\r\nExpect: 100-CONTINUE"),
    "Expect of a list": request(LENGTH + b"\r\nExpect: x, 100-continue"),
    "Expect of something else": request(LENGTH + b"\r\nExpect: 200-ok"),
    "Expect with chunks": chunked(IN_CHUNK, b"\r\nExpect: 100-continue"),
    "Upgrade to h2c": request(
        LENGTH + b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"
    ),
    "Upgrade to a websocket": request(
        LENGTH + b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA=="
    ),
    "chunk size in capitals and zeros": chunked(b"000%X\r\n%b\r\n0000\r\n\r\n" % (SIZE, HIDDEN)),
    "chunk extensions": chunked(b'%x;a;b=c;d="\t;e"\r\n%b\r\n0;f\r\n\r\n' % (SIZE, HIDDEN)),
    "one byte in each chunk": chunked(b"".join(b"1\r\n%c\r\n" % byte for byte in HIDDEN) + b"0\r\n\r\n"),
    "a length in the trailer": chunked(b"1\r\nx\r\n0\r\nContent-Length: %d\r\nX-A: b\r\n\r\n" % SIZE),
    "a coding in the trailer": chunked(b"1\r\nx\r\n0\r\nTransfer-Encoding: chunked\r\nHost: b\r\n\r\n"),
    "absolute form": request(LENGTH, first=b"POST http://b/nope HTTP/1.1"),
    "absolute form with a query": request(LENGTH, first=b"POST http://b?/hidden HTTP/1.1"),
    "a request in the target": request(LENGTH, first=b"POST /nope?HTTP/1.1%0d%0aX-Request-Id:hidden-000 HTTP/1.1"),
    "a long method": request(LENGTH, first=b"P" * 1000 + b" /nope HTTP/1.1"),
    "a method of WebDAV": request(LENGTH, first=b"PROPFIND /nope HTTP/1.1"),
    "a small method": request(LENGTH, first=b"post /nope HTTP/1.1"),
    "HTTP/1.0": request(LENGTH, first=b"POST /nope HTTP/1.0"),
    "HTTP/1.0 kept alive": request(LENGTH + b"\r\nConnection: keep-alive", first=b"POST /nope HTTP/1.0"),
    "X-HTTP-Method-Override": request(LENGTH + b"\r\nX-HTTP-Method-Override: DELETE"),
    "a forged client": request(LENGTH + b"\r\nX-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1"),
}

OVERFLOW = chunked(b"1000000000000000%x\r\n%b" % (SIZE, HIDDEN))  # valid, only that it never ends

# Every case of every kind, each with a hidden request at its end at the latest.
EVERYTHING = [
    OVERFLOW,
    *INVALID.values(),
    *VALID.values(),
    *(data + HIDDEN for data in MALFORMED.values()),
    *(data + HIDDEN for data in UNUSUAL),
]


def numbered(data, number):
    """Return a case with new ids."""
    return data.replace(b"outer-000", b"outer-%03d" % number).replace(b"hidden-000", b"hidden-%03d" % number)


def marked(mark, more=b""):
    """Return a harmless request with an id."""
    return b"GET /health HTTP/1.1\r\nHost: a\r\nX-Request-Id: %b\r\n%b\r\n" % (mark.encode(), more)


def ids(received):
    """Return the X-Request-Ids of the answers in it."""
    return re.findall(rb"\r\nX-Request-Id: (\S+)", received, re.IGNORECASE)


def served(process):
    """Return how many requests with each id the service has logged, refused ones included."""
    return Counter(re.findall(r"\b((?:outer|hidden|mark)-[0-9a-z-]+)$", process.log, re.M))


@pytest.mark.short
async def test_invalid_request_is_refused_with_all_that_follows(serve, shared_dsn, figure):
    """Each gets one 4xx, or 501, and the end of its connection. No other request is served."""
    process = await serve(shared_dsn)
    statuses = Counter()
    for number, (name, data) in enumerate(INVALID.items()):
        received = await deferToThread(exchange, process.port, numbered(data, number) + marked(f"mark-{number}"))
        (answer,) = parse(received)
        assert 400 <= answer.status < 500 or answer.status == 501, name
        assert answer.headers["connection"] == "close", name
        statuses[answer.status] += 1
    assert not [request_id for request_id in served(process) if not request_id.startswith("outer")]
    figure(f"{len(INVALID)} invalid requests: {dict(statuses)}")


@pytest.mark.short
async def test_request_hidden_in_a_body_is_not_served(serve, shared_dsn, figure):
    """The valid request around it is answered, and so is the request after it."""
    process = await serve(shared_dsn)
    for number, (name, data) in enumerate(VALID.items()):
        last = marked(f"mark-{number}", b"Connection: close\r\n")
        received = await deferToThread(exchange, process.port, numbered(data, number) + last)
        expected = [b"outer-%03d" % number]
        if not name.startswith("HTTP/1.0"):  # which ends the connection
            expected.append(b"mark-%d" % number)
        assert ids(received) == expected, name
    assert not [request_id for request_id in served(process) if request_id.startswith("hidden")]
    figure(f"{len(VALID)} valid requests with another one inside: none served")


class Client:
    """A client on a connection that it keeps."""

    def __init__(self, port, name):
        self._port = port
        self._name = name
        self._count = 0
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)

    def ask(self):
        """Send a request and check that the answer belongs to it."""
        self._count += 1
        mark = f"mark-{self._name}-{self._count}"
        self.connection.sendall(marked(mark))
        received = b""
        while not received.endswith(b"}"):
            more = self.connection.recv(65536)
            assert more, f"closed after {received}"
            received += more
        (answer,) = parse(received)
        assert (answer.status, answer.headers.get("x-request-id")) == (200, mark), received
        return mark


def attack(port, data):
    """Send a case and return the answers, without waiting for long."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(data)
    received = b""
    try:
        while select.select([connection], [], [], PATIENCE_SECONDS)[0]:
            more = connection.recv(65536)
            if not more:
                break
            received += more
            if b"\r\n\r\n" in received and not received.startswith(b"HTTP/1.1 100"):
                break
    except ConnectionResetError:
        pass
    return connection, received


@pytest.mark.needs("nginx")
@pytest.mark.parametrize(
    "directives",
    [
        (),
        ("proxy_request_buffering off",),
        ("proxy_request_buffering off", "ignore_invalid_headers off", "underscores_in_headers on"),
    ],
    ids=["buffered", "unbuffered", "unbuffered and lenient"],
)
async def test_clients_behind_a_proxy_get_their_own_answers(serve, shared_dsn, launch, tmp_path, directives, figure):
    """Clients share nginx with an attacker. What nginx took for a body is never a request."""
    process = await serve(shared_dsn)
    nginx = start_nginx(launch, tmp_path, process.port, *directives)
    statuses = Counter()

    def run():
        others = [Client(nginx.port, name) for name in "ab"]
        for number, data in enumerate(EVERYTHING):
            connection, received = attack(nginx.port, numbered(data, number))
            for other in others:
                other.ask()
            connection.close()
            for other in others:
                other.ask()
            assert b"mark-" not in received
            statuses[received[9:12].decode() if received.startswith(b"HTTP/1") else "none"] += 1
        for other in others:
            other.connection.close()

    await deferToThread(run)
    passed_on, logged = nginx.passed_on(), served(process)
    assert not logged - passed_on, "the service took for requests what nginx did not"
    marks = {request_id: count for request_id, count in logged.items() if request_id.startswith("mark")}
    assert set(marks.values()) == {1}
    assert len(marks) == 4 * len(EVERYTHING)
    figure(f"{len(EVERYTHING)} cases {' and '.join(directives) or 'buffered'}: {dict(statuses)}, {len(marks)} answers")
