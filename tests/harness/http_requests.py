"""HTTP requests of the tests: over treq in the reactor's thread, and blocking in threads of their own."""

import functools
import http.client
import itertools
import json
import threading
from dataclasses import dataclass

import msgspec
from treq.client import HTTPClient
from twisted.web.client import Agent, HTTPConnectionPool

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
def pool():
    """The connections of `http_client`."""
    from twisted.internet import reactor

    return HTTPConnectionPool(reactor)


def http_client():
    """A treq client; all of them share one connection pool."""
    from twisted.internet import reactor

    return HTTPClient(Agent(reactor, pool=pool()))


def ask(process, method, path, body=None, *, bearer=None, address=None):
    """One blocking request on this thread's own connection to the process: (status, JSON, headers)."""
    headers = {"X-Forwarded-For": address or new_address()}
    if bearer is not None:
        headers["Authorization"] = f"Bearer {bearer}"
    connections = _local.__dict__.setdefault("connections", {})
    connection = connections.get(process.port)
    if connection is None:
        connection = connections[process.port] = http.client.HTTPConnection("127.0.0.1", process.port, timeout=30)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read()), response.headers
    except (OSError, http.client.HTTPException):
        connection.close()
        raise


def refresh(process, token):
    """Spend a refresh token; as `ask`."""
    return ask(process, "POST", "/api/auth/refresh", {"refresh_token": token})
