"""Clients of event streams, on separate sockets."""

import json
import socket
from base64 import urlsafe_b64decode

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol

from tests.harness.http_requests import new_address
from tests.harness.players import players
from tests.harness.postgres import run_sql


class EventClient(Protocol):
    """A stream as received: `status`, `headers`, and `events`, which are pairs of a name and its data."""

    def __init__(self):
        self.raw = b""
        self.status = None
        self.headers = {}
        self.events = []
        self.retries = []
        self.heartbeats = 0
        self.repeats = 0  # of `hello` with a known revision: not in `events`, since other processes may cause one
        self.whole = False  # whether the last chunk has arrived
        self.lost = False
        self._text = b""
        self._taken = 0
        self._waiting = []

    def dataReceived(self, data):
        self.raw += data
        if self.status is None:
            if b"\r\n\r\n" not in self.raw:
                return
            head, _, self.raw = self.raw.partition(b"\r\n\r\n")
            first, *lines = head.decode("ascii").split("\r\n")
            self.status = int(first.split()[1])
            self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        if self.headers.get("transfer-encoding") == "chunked":
            self._read_chunks()
        else:
            self._text, self.raw = self._text + self.raw, b""
        if self.status == 200:
            self._read_events()
        self._wake()

    def connectionLost(self, reason):
        self.lost = True
        self._wake()

    def _read_chunks(self):
        while b"\r\n" in self.raw:
            size, _, rest = self.raw.partition(b"\r\n")
            length = int(size, 16)
            if len(rest) < length + 2:
                return
            assert rest[length : length + 2] == b"\r\n"
            self._text, self.raw = self._text + rest[:length], rest[length + 2 :]
            self.whole = length == 0

    def _read_events(self):
        while b"\n\n" in self._text:
            block, _, self._text = self._text.partition(b"\n\n")
            fields = [line.partition(":")[::2] for line in block.decode("utf-8").split("\n")]
            values = {name: value.removeprefix(" ") for name, value in fields}
            if "event" in values:
                assert len(fields) == 2, "the data of an event is one line"
                self._add(values["event"], json.loads(values["data"]))
            elif "retry" in values:
                self.retries.append(int(values["retry"]))
            else:
                assert [*values] == [""]
                self.heartbeats += 1

    def _add(self, name, data):
        known = [event["revision"] for _, event in self.events if "revision" in event]
        if name == "hello" and data["revision"] in known[-1:]:
            self.repeats += 1
        else:
            self.events.append((name, data))

    def _wake(self):
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.callback(None)

    async def until(self, condition):
        """Wait until the condition holds, and fail if the connection is lost before."""
        while not (result := condition()):
            assert not self.lost, "the stream has ended"
            waiting = Deferred()
            self._waiting.append(waiting)
            await waiting
        return result

    async def next(self):
        """Wait for the next event that was not returned before."""
        await self.until(lambda: len(self.events) > self._taken)
        self._taken += 1
        return self.events[self._taken - 1]

    async def ended(self):
        """Wait for the end of the connection; return the reason, or None if the stream broke off."""
        await self.until(lambda: self.lost)
        name, data = self.events[-1] if self.events else ("", {})
        return data["reason"] if name == "end" else None

    @property
    def body(self):
        return self._text if self.headers.get("transfer-encoding") == "chunked" else self._text + self.raw


async def connect(
    reactor, port, token, *, query="", headers=(), version="1.1", method="GET", address=None, small=False
):
    """Request a stream; return once the response's head is there. A `small` buffer makes the client full soon."""
    client = await connectProtocol(TCP4ClientEndpoint(reactor, "127.0.0.1", port), EventClient())
    if small:
        client.transport.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    lines = [
        f"{method} /api/events{query} HTTP/{version}",
        "Host: a",
        f"X-Forwarded-For: {address or new_address()}",
        *([f"Authorization: Bearer {token}"] if token else []),
        *headers,
    ]
    client.transport.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode("ascii"))
    await client.until(lambda: client.status is not None)
    return client


async def won(client, games=1):
    """Push this many additional wins."""
    mine = (await client.pull()).merged
    stats = replace(mine.stats, games_won=mine.stats.games_won + games, games_played=mine.stats.games_played + games)
    return await client.push(replace(mine, stats=stats))


def listeners(dsn, count):
    """Store players with a session each, which their access tokens name; return the tokens."""
    made = players(dsn, count)
    claims = made[0][2].split(".")[1]
    expiry = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
    run_sql(dsn, "UPDATE refresh_tokens SET session_id = jti, access_expiry = %s", (expiry,))
    return [access for _, _, access in made]
