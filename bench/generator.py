"""The load generator, in a process of its own: `python -m bench.generator WORLD`, where WORLD is JSON.

It reads commands from standard input and answers each with a JSON object on a line. It runs on uvloop and looks only at
the status and the length of an answer, so it needs a small part of a core where a service needs a whole one.

A load is measured in turns, between which its connections stay open. A turn begins and ends without an outstanding
request, and counts everything between, so each answer and its CPU time belong to exactly one turn.
"""

import asyncio
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any

import uvloop

from .processes import cpu_seconds, used_between
from .workloads import WORKLOADS, Crowd, Exchange
from .world import World

WARM_UP_SECONDS = 0.3
LATEST_SECONDS = 30.0  # a turn ends at the latest so long after its time
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


class Load:
    """One workload against one port, over a number of connections; each sends its next request after an answer."""

    def __init__(self, crowd: Crowd, *, route: str, port: int, connections: int, prefix: str = "") -> None:
        self.workload = WORKLOADS[route]
        self.crowd = crowd
        self._port = port
        self._count = connections
        self._prefix = prefix.encode()  # of all paths
        self._connections: list[Connection] = []
        self._latencies: list[float] = []
        self._statuses: Counter[str] = Counter()
        self._until = self._most = 0.0

    async def open(self) -> None:
        """Open the connections, and send requests for a moment that doesn't count."""
        loop = asyncio.get_running_loop()
        for _ in range(self._count):
            _, connection = await loop.create_connection(lambda: Connection(self), "127.0.0.1", self._port)
            self._connections.append(connection)
        await self.turn(WARM_UP_SECONDS)

    async def turn(self, seconds: float, most: float = math.inf) -> dict[str, Any]:
        """Send requests for `seconds`, or until `most` were answered, and wait for the outstanding answers.

        Returns the count, the rate in answers a second, latencies in milliseconds, and the statuses.
        """
        self._latencies, self._statuses = [], Counter()
        began = perf_counter()
        self._until, self._most = began + seconds, most
        async with asyncio.timeout(seconds + LATEST_SECONDS if math.isfinite(seconds) else None):
            await asyncio.gather(*(connection.start() for connection in self._connections))
        latencies = sorted(self._latencies) or [math.nan]
        return {
            "count": len(self._latencies),
            "rate": len(self._latencies) / (perf_counter() - began),
            "p50": latencies[len(latencies) // 2] * 1000,
            "p99": latencies[len(latencies) * 99 // 100] * 1000,
            "statuses": dict(self._statuses),
        }

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            connection.close()

    def answered(self, status: str, began: float) -> bool:
        """Count the answer to a request that was sent at `began`; returns whether to send another one."""
        now = perf_counter()
        self._latencies.append(now - began)
        self._statuses[status] += 1
        return now < self._until and len(self._latencies) < self._most

    def exchange(self) -> Exchange:
        """Start the next exchange of the workload."""
        exchange = self.workload(self.crowd)
        return self._below_prefix(exchange) if self._prefix else exchange

    def _below_prefix(self, exchange: Exchange) -> Exchange:
        answer = yield next(exchange).replace(b" /", b" " + self._prefix + b"/", 1)
        with suppress(StopIteration):
            exchange.send(answer)


class Connection(asyncio.Protocol):
    """A keep-alive connection that sends a request, waits for the answer, and sends the next request."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = b""
        self._idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.set_result(None)
        self._began = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def start(self) -> asyncio.Future[None]:
        """Begin a turn; the future fires when the last answer of the turn has come."""
        self._idle = asyncio.get_running_loop().create_future()
        if self._transport.is_closing():
            self.connection_lost(None)
        else:
            self._ask()
        return self._idle

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _ask(self) -> None:
        self._exchange = self._load.exchange()
        request = next(self._exchange)
        self._began = perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._buffer, 0, end)
        if len(self._buffer) < end + 4 + int(length[1]) if length else not self._buffer.endswith(b"\r\n0\r\n\r\n"):
            return
        answer, self._buffer = self._buffer, b""
        again = self._load.answered(answer[9:12].decode(), self._began)
        with suppress(StopIteration):
            self._exchange.send(answer[end + 4 :])
        if again:
            self._ask()
        else:
            self._idle.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._idle.done():
            self._load.answered("lost", self._began)
            self._idle.set_result(None)


class Loads:
    """The open loads, and the commands on them."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._open: list[Load] = []

    async def open(self, loads: list[dict[str, Any]]) -> list[int]:
        """Open loads; returns their numbers."""
        first = len(self._open)
        for load in loads:
            self._open.append(Load(self._crowd, **load))
            await self._open[-1].open()
        return list(range(first, len(self._open)))

    async def turn(
        self, numbers: list[int], seconds: float, most: float, groups: dict[str, list[int]]
    ) -> dict[str, Any]:
        """Measure a turn of loads that run at the same time.

        Returns what each load measured, the seconds that passed, and the seconds of CPU time that this process and each
        of the `groups` of processes used meanwhile.
        """
        measured = {**groups, "generator": [os.getpid()]}
        before = {name: cpu_seconds(pids) for name, pids in measured.items()}
        began = perf_counter()
        results = await asyncio.gather(*(self._open[number].turn(seconds, most) for number in numbers))
        elapsed = perf_counter() - began
        used = {name: used_between(before[name], cpu_seconds(pids)) for name, pids in measured.items()}
        return {"seconds": elapsed, "used": used, "loads": results}

    async def close(self, numbers: list[int]) -> None:
        """Close the connections of loads."""
        for number in numbers:
            self._open[number].close()


async def main(read: Callable[[], str] = sys.stdin.readline) -> None:
    """Execute commands until the end of the input."""
    loads = Loads(Crowd(World(**json.loads(sys.argv[1]))))
    while command := read():  # nothing runs between turns, so this may block
        name, arguments = json.loads(command)
        result = await getattr(loads, name)(**arguments)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
