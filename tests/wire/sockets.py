"""Connections that send any bytes, and parsers of the answers."""

import json
import socket

from twisted.internet import defer, task
from twisted.internet.protocol import Protocol

from tests.harness.constants import PATIENCE
from tests.harness.error_codes import check_error_code
from tests.harness.http_requests import new_address


class Wire(Protocol):
    """A connection that keeps all bytes that it receives."""

    def __init__(self):
        self.received = b""
        self.closed = defer.Deferred()
        self._waiting = []

    def dataReceived(self, data):
        self.received += data
        for enough, waiting in list(self._waiting):
            if enough(self.received):
                self._waiting.remove((enough, waiting))
                waiting.callback(None)

    def connectionLost(self, reason):
        self.closed.callback(None)

    def send(self, data):
        self.transport.write(data)

    def until(self, enough):
        """Return a Deferred that fires when `enough` returns true for the bytes received."""
        waiting = defer.Deferred()
        if enough(self.received):
            waiting.callback(None)
        else:
            self._waiting.append((enough, waiting))
        return waiting

    async def answers(self, head=False):
        """Return all answers, once the other side has closed."""
        await self.closed
        return parse(self.received, head=head)


def exchange(port, data):
    """Send bytes and read until the other side closes. The call blocks, so the port must be another process's."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(data)
        received = b""
        while more := connection.recv(65536):
            received += more
    return received


async def turn():
    """Let the reactor run what is due."""
    from twisted.internet import reactor

    await task.deferLater(reactor, 0)


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def error(self):
        """Return the error's text, after checking that the body has nothing else."""
        assert self.headers["content-type"] == "application/json"
        decoded = json.loads(self.body)
        assert list(decoded) == ["error"]
        return decoded["error"]


def parse(data, head=False):
    """Split the bytes of a connection into answers.

    Each must have a length, or a status without a body, and a code if it is an error.
    """
    answers = []
    while data:
        top, end, data = data.partition(b"\r\n\r\n")
        assert end, f"half an answer: {top!r}"
        first, *lines = top.decode("ascii").split("\r\n")
        version, status, _ = first.split(" ", 2)
        assert version in ("HTTP/1.1", "HTTP/1.0")
        pairs = [line.split(": ", 1) for line in lines]
        headers = {name.lower(): value for name, value in pairs}
        assert len(headers) == len(pairs), f"a header twice: {lines}"
        assert "transfer-encoding" not in headers
        bodiless = int(status) in (100, 204, 304)
        assert ("content-length" in headers) != bodiless
        length = 0 if bodiless or head else int(headers["content-length"])
        assert len(data) >= length
        check_error_code(int(status), headers)
        answers.append(Answer(int(status), headers, data[:length]))
        data = data[length:]
    return answers


def post(path="/api/auth/login", extra="", method="POST"):
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {new_address()}\r\n{extra}\r\n".encode()
