"""HTTP requests of the tests: over treq in the reactor's thread, and blocking in other threads."""

import functools
import http.client
import itertools
import json
import select
import socket
import threading
from dataclasses import dataclass

import msgspec
from treq.client import HTTPClient
from twisted.web.client import Agent, HTTPConnectionPool

from tests.harness.constants import PATIENCE

_numbers = itertools.count(1)
_local = threading.local()


def new_address():
    """A new IPv4 address, which no client had before."""
    number = next(_numbers)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


@dataclass(frozen=True)
class Answer:
    """An HTTP response; `headers` has lower-case names."""

    status: int
    headers: dict
    content: bytes

    @property
    def json(self):
        """The decoded body, which must be declared as JSON."""
        assert self.headers["content-type"] == "application/json"
        return msgspec.json.decode(self.content)


@functools.cache
def pool(keep):
    """The connection pool that all clients of `http_client` share."""
    from twisted.internet import reactor

    return HTTPConnectionPool(reactor, persistent=keep)


def http_client(*, keep):
    """A treq client; with `keep`, it reuses connections."""
    from twisted.internet import reactor

    return HTTPClient(Agent(reactor, pool=pool(keep)))


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Connection:
    """A blocking connection to a local port or a `unix` socket, for a separate thread.

    Requests reuse the connection. It is replaced if the server has announced its end or has closed it. `fresh`: whether
    the last request was the first on its connection.
    """

    fresh = True

    def __init__(self, port=None, *, unix=None, address=None, timeout=PATIENCE):
        self.address = address or new_address()
        if unix is not None:
            self._http = UnixConnection(unix, timeout)
        else:
            self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, method, path, body=None, *, bearer=None, address=None, headers=None):
        """Send a request, with the body as JSON unless it is bytes.

        Raises OSError or HTTPException if the response is incomplete.
        """
        if self._http.sock is not None and readable(self._http.sock):
            self.close()  # the server has closed the idle connection, and no client would use it
        self.fresh = self._http.sock is None
        headers = {"X-Forwarded-For": address or self.address, **(headers or {})}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            self._http.request(method, path, body, headers)
            response = self._http.getresponse()  # closes the connection if the response demands that
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self):
        self._http.close()


def readable(connection):
    """Return whether a socket has something to read, or has reached its end."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def ask(process, method, path, body=None, *, bearer=None, address=None):
    """Send a request on this thread's connection to the process, from a new address; return (status, JSON, headers)."""
    connections = _local.__dict__.setdefault("connections", {})
    if process.port not in connections:
        connections[process.port] = Connection(process.port)
    answer = connections[process.port].ask(method, path, body, bearer=bearer, address=address or new_address())
    return answer.status, answer.json, answer.headers


def refresh(process, token):
    """Spend a refresh token; return the same as `ask`."""
    return ask(process, "POST", "/api/auth/refresh", {"refresh_token": token})
