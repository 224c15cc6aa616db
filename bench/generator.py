"""The load generator, in a process of its own: `python -m bench.generator WORLD`, where WORLD is JSON.

It reads commands from standard input and answers each with its measurements, one JSON object a line. It runs on uvloop
and looks only at the status and the length of an answer, so it needs a small part of a core where a service needs a
whole one. It reports its own CPU time as well.
"""

import asyncio
import json
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
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


class Load:
    """One workload against one port, over a number of connections; each sends its next request after an answer."""

    def __init__(self, crowd: Crowd, *, route: str, port: int, connections: int, prefix: str = "") -> None:
        self.workload = WORKLOADS[route]
        self.crowd = crowd
        self._port = port
        self._connections = connections
        self._prefix = prefix.encode()  # of all paths
        self.counting = False
        self.over = False
        self.latencies: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.total = 0  # answers, counted or not
        self._open: list[Connection] = []

    async def start(self) -> None:
        """Open the connections; each sends its first request at once."""
        loop = asyncio.get_running_loop()
        for _ in range(self._connections):
            _, connection = await loop.create_connection(lambda: Connection(self), "127.0.0.1", self._port)
            self._open.append(connection)

    async def stop(self) -> None:
        """Send no more requests, wait for the outstanding answers, and close the connections."""
        self.over = True
        await asyncio.wait_for(asyncio.gather(*(connection.done for connection in self._open)), 30)

    def answered(self, status: str, seconds: float) -> None:
        """Count one answer."""
        self.total += 1
        if self.counting:
            self.latencies.append(seconds)
            self.statuses[status] += 1

    def exchange(self) -> Exchange:
        """Start the next exchange of the workload."""
        exchange = self.workload(self.crowd)
        return self._below_prefix(exchange) if self._prefix else exchange

    def _below_prefix(self, exchange: Exchange) -> Exchange:
        answer = yield next(exchange).replace(b" /", b" " + self._prefix + b"/", 1)
        with suppress(StopIteration):
            exchange.send(answer)

    def result(self, seconds: float) -> dict[str, Any]:
        """Summarise `seconds` of measurement: rate in requests a second, latencies in milliseconds."""
        latencies = sorted(self.latencies) or [float("nan")]
        return {
            "count": len(self.latencies),
            "total": self.total,
            "rate": len(self.latencies) / seconds,
            "p50": latencies[len(latencies) // 2] * 1000,
            "p99": latencies[len(latencies) * 99 // 100] * 1000,
            "statuses": dict(self.statuses),
        }


class Connection(asyncio.Protocol):
    """A keep-alive connection that sends a request, waits for the answer, and sends the next request."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._ask()

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
        self._load.answered(answer[9:12].decode(), perf_counter() - self._began)
        with suppress(StopIteration):
            self._exchange.send(answer[end + 4 :])
        if self._load.over:
            self._transport.close()
        else:
            self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._load.over:
            self._load.answered("lost", 0)
        if not self.done.done():
            self.done.set_result(None)


async def measure(
    crowd: Crowd, loads: list[dict], seconds: float, most: int | None, groups: dict[str, list[int]]
) -> dict[str, Any]:
    """Run all loads at the same time for `seconds`, or until `most` answers were counted.

    Returns the results of the loads and, for each of the `groups` of processes, how many cores it used.
    """
    running = [Load(crowd, **load) for load in loads]
    for load in running:
        await load.start()
    await asyncio.sleep(WARM_UP_SECONDS)
    own = {"generator": [None]}
    before = {name: cpu_seconds(pids) for name, pids in (groups | own).items()}
    began = perf_counter()
    for load in running:
        load.counting = True
    while True:
        await asyncio.sleep(min(seconds, 1.0) if most else seconds)
        if most is None or sum(len(load.latencies) for load in running) >= most:
            break
    for load in running:
        load.counting = False
    elapsed = perf_counter() - began
    used = {name: used_between(before[name], cpu_seconds(pids)) for name, pids in (groups | own).items()}
    for load in running:
        await load.stop()
    cores = {name: each / elapsed for name, each in used.items()}
    return {"seconds": elapsed, "cores": cores, "loads": [load.result(elapsed) for load in running]}


def main(read: Callable[[], str] = sys.stdin.readline) -> None:
    """Execute commands until the end of the input."""
    crowd = Crowd(World(**json.loads(sys.argv[1])))
    while command := read():
        result = uvloop.run(measure(crowd, **json.loads(command)))
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
