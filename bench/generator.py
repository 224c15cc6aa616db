"""The load generator, a separate process: `python -m bench.generator WORLD`, where WORLD is JSON.

It reads commands from standard input and answers each with a line of JSON. It runs on uvloop and looks only at the
status and the length of an answer, so it needs only a small part of a core to keep a service busy.

A load is measured in turns, and its connections stay open between turns. A turn begins and ends without an outstanding
request, and counts everything in between, so each answer and its CPU time belong to exactly one turn.
"""

import asyncio
import json
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
from .workloads import WORKLOADS, Crowd
from .world import World

WARM_UP_SECONDS = 0.3
LATEST_SECONDS = 30.0  # the longest wait for outstanding answers at the end of a turn
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """A keep-alive connection, for one request after the other."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        """Send a request; the future gets the head and body of the answer, or b"" if the connection ends before."""
        self._answer = asyncio.get_running_loop().create_future()
        if self._transport.is_closing():
            self._answer.set_result(b"")
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """Close the connection."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end >= 0 and (length := _LENGTH.search(self._buffer, 0, end)):
            if len(self._buffer) < end + 4 + int(length[1]):
                return
            answer, self._buffer = self._buffer, b""
            self._answer.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_result(b"")


async def connect(port: int) -> Connection:
    """Open a connection to this port."""
    _, made = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    return made


class Load:
    """A workload on open connections, each of which sends its next request `pause` seconds after an answer."""

    def __init__(self, crowd: Crowd, route: str, connections: list[Connection], pause: float) -> None:
        self._crowd = crowd
        self._workload = WORKLOADS[route]
        self._connections = connections
        self._pause = pause

    async def turn(self, seconds: float) -> dict[str, Any]:
        """Send requests for `seconds`, and wait for the outstanding answers.

        Returns the count, the rate (answers with status 200 a second), latencies in milliseconds, and the statuses.
        """
        taken: list[float] = []
        statuses: Counter[str] = Counter()
        began = perf_counter()

        async def ask(connection: Connection) -> None:
            while (sent := perf_counter()) < began + seconds:
                exchange = self._workload(self._crowd)
                answer = await connection.ask(next(exchange))
                taken.append(perf_counter() - sent)
                statuses[answer[9:12].decode() or "lost"] += 1
                if not answer:
                    return
                with suppress(StopIteration):
                    exchange.send(answer.partition(b"\r\n\r\n")[2])
                if self._pause:
                    await asyncio.sleep(self._pause)

        async with asyncio.timeout(seconds + LATEST_SECONDS):
            await asyncio.gather(*map(ask, self._connections))
        elapsed = perf_counter() - began
        taken.sort()
        return {
            "count": len(taken),
            "rate": statuses["200"] / elapsed,
            "p50": taken[len(taken) // 2] * 1000,
            "p99": taken[len(taken) * 99 // 100] * 1000,
            "statuses": dict(statuses),
            "seconds": elapsed,
        }

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            connection.close()


class Loads:
    """The open loads, and the commands on them."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._open: list[Load] = []

    async def open(self, route: str, port: int, connections: int, pause: float = 0.0) -> int:
        """Open a load, send some requests that don't count, and return the number of the load."""
        load = Load(self._crowd, route, [await connect(port) for _ in range(connections)], pause)
        await load.turn(WARM_UP_SECONDS)
        self._open.append(load)
        return len(self._open) - 1

    async def turn(self, number: int, seconds: float, groups: dict[str, list[int]]) -> dict[str, Any]:
        """Measure a turn of a load.

        Returns its results, and the seconds of CPU time that this process and each of the `groups` of processes used
        during the turn.
        """
        measured = {**groups, "generator": [os.getpid()]}
        before = {name: cpu_seconds(pids) for name, pids in measured.items()}
        turn = await self._open[number].turn(seconds)
        used = {name: used_between(before[name], cpu_seconds(pids)) for name, pids in measured.items()}
        return turn | {"used": used}

    async def close(self, number: int) -> None:
        """Close the connections of a load."""
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
