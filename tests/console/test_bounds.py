"""Heads and bodies that are too large for the console, which has the bounds of the players' listener."""

import pytest
from twisted.internet.threads import deferToThread

from solisync.rules.shapes import MAX_BODY
from tests.wire.sockets import exchange, parse

SIGN_IN = b"POST /api/admin/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%b\r\n"
CHUNKS = (b"10000\r\n" + b" " * 65536 + b"\r\n") * 40


def said(console, data):
    """Return the answers to bytes on a new connection, once the service has closed it."""
    return deferToThread(lambda: parse(exchange(console.port, data)))


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (SIGN_IN % (b"X-Large: " + b"x" * 70_000 + b"\r\n"), 431),
        (SIGN_IN % (b"X-Many: x\r\n" * 600), 431),
        (SIGN_IN % (b"Content-Length: %d\r\n" % (MAX_BODY + 1)), 413),
        (SIGN_IN % b"Transfer-Encoding: chunked\r\n" + CHUNKS, 413),
        (b"PUT /api/admin/players/x/lock HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999\r\n\r\n", 413),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
    ],
)
async def test_oversized_requests_are_refused_before_they_are_read(console, data, status):
    """The answer needs no sign-in."""
    (answer,) = await said(console, data)
    assert (answer.status, answer.headers["connection"]) == (status, "close")
