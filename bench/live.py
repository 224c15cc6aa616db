"""`make bench-live`: streams of live events on two processes of the service, and what they cost everybody else.

Clients come from addresses of 127.0.0.0/8, because one address may have only a tenth of a process's streams.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import resource
import signal
import socket
import statistics
import time
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection as Connected
from typing import Any

import psycopg2

from solisync.web.recorded_game import EXAMPLE_FILE

from .cells import Cell, load_cell, run_rounds
from .processes import Server, children, cpu_seconds, memory_mib, used_between
from .report import say
from .stage import Stage
from .world import Player, World, issued_at, payload

PER_ADDRESS = 5  # streams: few enough for any setting
OPENING = 200  # streams that are being opened at a time
IDLE_SECONDS = 20.0
VERDICTS = 50
BACK_SECONDS = 60.0


class StreamClient(asyncio.Protocol):
    """A client of a stream: opens it, and again where it ends; notes when it has read an event of a push."""

    def __init__(self, number: int, port: int, heard: dict[int, deque[float]]) -> None:
        self.number = number
        self.port = port
        self.refused = 0
        self.ready: asyncio.Future[None] | None = None
        self._heard = heard
        self._retry = 1.0
        self._request = (
            f"GET /api/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {Player(number).access.decode()}\r\n\r\n"
        ).encode()

    async def open(self) -> None:
        """Open the stream; returns when it has begun."""
        loop = asyncio.get_running_loop()
        place = self.number // PER_ADDRESS
        address = f"127.1.{place // 250}.{1 + place % 250}"
        while True:
            self.ready = loop.create_future()
            try:
                await loop.create_connection(lambda: self, "127.0.0.1", self.port, local_addr=(address, 0))
                await self.ready
            except OSError:
                await asyncio.sleep(self._retry * random.random())
            else:
                return

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            if line.startswith(b"retry: "):
                self._retry = int(line[7:]) / 1000
            elif line == b"event: hello" and self.ready is not None and not self.ready.done():
                self.ready.set_result(None)
            elif line in (b"event: progress", b"event: verdict"):
                self._heard.setdefault(self.number, deque()).append(time.perf_counter())
            elif line.startswith(b"HTTP/1.1 ") and not line.startswith(b"HTTP/1.1 200"):
                self.refused += 1
                self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if self.ready is None:
            return
        if not self.ready.done():
            self.ready.set_exception(OSError("refused"))
        else:
            self.ready = None
            self.returning = asyncio.get_running_loop().create_task(self._come_back())

    async def _come_back(self) -> None:
        await asyncio.sleep(self._retry)
        await self.open()


class Connection(asyncio.Protocol):
    """A kept connection that sends one request after the other."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[bytes] | None = None
        self._read = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    async def ask(self, request: bytes) -> bytes:
        """Send a request; the head of its answer, once all of the body is there."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, body = self._read.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if end and length and len(body) >= int(length) and self._answer is not None:
            self._read = b""
            self._answer.set_result(head)


async def connection(port: int) -> Connection:
    """A new connection to this port."""
    _, made = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    return made


async def open_all(clients: Sequence[StreamClient]) -> float:
    """Open these streams; the seconds that it took."""
    gate = asyncio.Semaphore(OPENING)

    async def open_one(client: StreamClient) -> None:
        async with gate:
            await client.open()

    began = time.perf_counter()
    await asyncio.gather(*map(open_one, clients))
    return time.perf_counter() - began


def watch(port: int, asking: Connected) -> None:
    """Ask for /health a hundred times a second until something is sent, and send back how long each took.

    In a process of its own: that of the clients is busy.
    """
    times = []
    with socket.create_connection(("127.0.0.1", port)) as service:
        while not asking.poll(0.01):
            began = time.perf_counter()
            service.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            service.recv(4_096)
            times.append(time.perf_counter() - began)
    asking.send(times)


async def pushes(
    port: int, players: int, rate: float, seconds: float, heard: dict[int, deque[float]]
) -> dict[str, Any]:
    """Push to random players through one process: how long after the answer each stream has read its event.

    Players with an even number have their streams at that process, the others at the other one.
    """
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(32):
        free.put_nowait(await connection(port))
    document = payload(3_000)
    lags: dict[str, list[float]] = {"same": [], "other": []}
    heard.clear()
    running = set()

    async def push(number: int, games: int) -> None:
        sender = await free.get()
        document["stats"]["games_played"] = games
        body = json.dumps(document).encode()
        head = b"POST /api/sync/push HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %b\r\nContent-Length: %d\r\n\r\n"
        answer = await sender.ask(head % (Player(number).access, len(body)) + body)
        assert b" 200 " in answer[:20], answer
        acknowledged = time.perf_counter()
        free.put_nowait(sender)
        until = time.perf_counter() + 5
        while not heard.get(number):
            if time.perf_counter() > until:
                return
            await asyncio.sleep(0.001)
        lags["other" if number % 2 else "same"].append(max(0.0, heard[number].popleft() - acknowledged))

    order = random.sample(range(players), min(players, int(rate * seconds)))
    began = time.perf_counter()
    for count, number in enumerate(order):
        await asyncio.sleep(max(0.0, began + count / rate - time.perf_counter()))
        running.add(asyncio.create_task(push(number, 1_000 + count)))
    await asyncio.gather(*running)
    return {"pushed": len(order), **{where: [len(found), *_quantiles(found)] for where, found in lags.items()}}


async def verdicts(port: int, players: int) -> list[float]:
    """Upload a won game for each of some players: how long after the answer each stream has read its verdict."""
    heard: dict[int, deque[float]] = {}
    clients = [StreamClient(number, port, heard) for number in range(players)]
    await open_all(clients)
    uploading = await connection(port)
    body = EXAMPLE_FILE.read_bytes()
    head = b"POST /api/replays HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %b\r\nContent-Length: %d\r\n\r\n"
    times = []
    for number in range(players):
        answer = await uploading.ask(head % (Player(number).access, len(body)) + body)
        assert b" 200 " in answer[:20], answer
        answered = time.perf_counter()
        while not heard.get(number):
            await asyncio.sleep(0.001)
        times.append(max(0.0, heard[number].popleft() - answered))
    for client in clients:
        client.ready = None  # they don't come back
    return times


def _quantiles(times: Sequence[float]) -> tuple[float, float]:
    """The median and the slowest of a hundred, in milliseconds."""
    if len(times) < 2:
        return 0.0, 0.0
    cuts = statistics.quantiles(times, n=100)
    return 1000 * cuts[49], 1000 * cuts[98]


def name_sessions(dsn: str) -> None:
    """Let the access token of each player name a session, without which there are no streams."""
    expiry = int(issued_at().timestamp()) + 86_400
    with psycopg2.connect(dsn) as database, database.cursor() as cursor:
        cursor.execute("UPDATE refresh_tokens SET session_id = jti, access_expiry = %s", (expiry,))


async def measure(here: Server, there: Server, cells: list[Cell], arguments: argparse.Namespace) -> None:
    """Open streams on both processes, and measure everything but the reload."""
    heard: dict[int, deque[float]] = {}
    clients = [StreamClient(number, (there if number % 2 else here).port, heard) for number in range(arguments.streams)]
    before = [memory_mib(server.pid) for server in (here, there)]
    asking, answering = multiprocessing.Pipe()
    watching = multiprocessing.get_context("spawn").Process(target=watch, args=(here.port, answering))
    watching.start()
    seconds = await open_all(clients)
    asking.send(None)
    times = await asyncio.to_thread(asking.recv)
    watching.join()
    after = [memory_mib(server.pid) for server in (here, there)]
    kib = 1024 * (sum(after) - sum(before)) / arguments.streams
    say(f"{arguments.streams:,} streams opened in {seconds:.1f} s; /health p50, p99: {_shown(_quantiles(times))} ms")
    say(f"memory of the service: {kib:.1f} KiB a stream")
    used = cpu_seconds([here.pid, there.pid])
    await asyncio.sleep(IDLE_SECONDS)
    idle = used_between(used, cpu_seconds([here.pid, there.pid])) / IDLE_SECONDS
    say(f"idle: {100 * idle:.1f} % of a core")
    found = await pushes(here.port, arguments.streams, arguments.rate, arguments.seconds, heard)
    for where in ("same", "other"):
        count, *quantiles = found[where]
        say(f"{where} process: {count:,} events, p50 and p99 after the answer: {_shown(quantiles)} ms")
    for figures in await asyncio.to_thread(run_rounds, cells, arguments.rounds, 1.0, say):
        say("pushes, {server}: {rate:.0f} a second, {service_us:.0f} µs of the service".format_map(figures))
    for client in clients:
        client.ready = None  # they don't come back


async def reload(server: Server, arguments: argparse.Namespace) -> None:
    """Replace both workers of a service with all streams open; how long until all are back."""
    clients = [StreamClient(number, server.port, {}) for number in range(arguments.streams)]
    await open_all(clients)
    old = set(children(server.pid))
    began = time.perf_counter()
    os.kill(server.pid, signal.SIGHUP)
    while old & set(children(server.pid)) or any(client.ready is None or not client.ready.done() for client in clients):
        await asyncio.sleep(0.1)
        if time.perf_counter() - began > BACK_SECONDS:
            say(f"not all streams were back after {BACK_SECONDS:g} s")
            return
    refused = sum(client.refused for client in clients)
    say(f"reload: all streams back after {time.perf_counter() - began:.1f} s; {refused} were asked to wait")


def _shown(quantiles: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in quantiles)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=500, help="pushes a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to push")
    parser.add_argument("--rounds", type=int, default=5, help="of the comparison of pushes with and without streams")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    world = World(players=arguments.streams, document_bytes=3_000, replays=1, replay_bytes=1_000)
    with Stage(world) as stage:
        stage.open(workers=1)
        name_sessions(stage.dsn)
        here, there = (stage.solisync(SOLISYNC_STREAMS=arguments.streams) for _ in range(2))
        without = stage.solisync(SOLISYNC_STREAMS=0)
        generator = stage.generator()
        cells = [
            load_cell(generator, name, server, "push", stage.database_pids)
            for name, server in (("with streams", here), ("without", without))
        ]
        asyncio.run(measure(here, there, cells, arguments))
        for server in (here, there, without):
            server.stop()  # PostgreSQL has no room for the connections of still more
        checking = stage.solisync(SOLISYNC_CHECKERS=1)
        found = asyncio.run(verdicts(checking.port, VERDICTS))
        checking.stop()
        say(f"upload answered to verdict read, p50 and p99: {_shown(_quantiles(found))} ms")
        asyncio.run(reload(stage.solisync(SOLISYNC_WORKERS=2, SOLISYNC_STREAMS=arguments.streams), arguments))


if __name__ == "__main__":
    main()
