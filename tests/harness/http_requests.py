"""HTTP requests of the tests: over treq in the reactor's thread, and blocking in threads of their own."""

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
    """An IPv4 address that no client had before."""
    number = next(_numbers)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


@dataclass(frozen=True)
class Answer:
    """An HTTP response: headers by their lower-case names."""

    status: int
    headers: dict
    content: bytes

    @property
    def json(self):
        """The body, which must be JSON and say so."""
        assert self.headers["content-type"] == "application/json"
        return msgspec.json.decode(self.content)


@functools.cache
def pool(keep):
    """The connections of `http_client`, which all clients share."""
    from twisted.internet import reactor

    return HTTPConnectionPool(reactor, persistent=keep)


def http_client(*, keep):
    """A treq client, which can `keep` its connections for the next request."""
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
    """A blocking connection to a port of this machine or to a `unix` socket, for a thread of the test's own.

    It is kept between requests, and made anew when the server has announced its end, or has closed it meanwhile.
    `fresh`: whether the connection of the last request had not answered anything before.
    """

    fresh = True

    def __init__(self, port=None, *, unix=None, address=None, timeout=PATIENCE):
        self.address = address or new_address()
        if unix is not None:
            self._http = UnixConnection(unix, timeout)
        else:
            self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, method, path, body=None, *, bearer=None, address=None, headers=None):
        """One request, whose body is sent as JSON unless it is bytes.

        Raises OSError or HTTPException when the answer does not come whole.
        """
        if self._http.sock is not None and readable(self._http.sock):
            self.close()  # idle for so long that the server closed it: no client would send anything there
        self.fresh = self._http.sock is None
        headers = {"X-Forwarded-For": address or self.address, **(headers or {})}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            self._http.request(method, path, body, headers)
            response = self._http.getresponse()  # which has closed the connection if that is what the answer says
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self):
        self._http.close()


def readable(connection):
    """Return whether there is something to read from a socket, be it only its end."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def ask(process, method, path, body=None, *, bearer=None, address=None):
    """One request on this thread's own connection to the process, from a new address: (status, JSON, headers)."""
    connections = _local.__dict__.setdefault("connections", {})
    if process.port not in connections:
        connections[process.port] = Connection(process.port)
    answer = connections[process.port].ask(method, path, body, bearer=bearer, address=address or new_address())
    return answer.status, answer.json, answer.headers


def refresh(process, token):
    """Spend a refresh token; as `ask`."""
    return ask(process, "POST", "/api/auth/refresh", {"refresh_token": token})
