"""`make bench-live`: streams of live events on two processes of the service, and what they cost other clients.

Clients use addresses in 127.0.0.0/8, because an address may have only a tenth of a process's streams.
"""

import argparse
import asyncio
import json
import random
import resource
import statistics
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from solisync.rules.stock import Stock

from .cells import Cell, load_cell
from .generator import Connection, connect
from .pairs import Plan, compare
from .processes import Server, cpu_seconds, memory_mib, used_between
from .report import say
from .stage import Stage
from .streams import StreamClient, open_all
from .world import Player, World

IDLE_SECONDS = 20.0
TURN_SECONDS = 2.0


async def pushes(
    port: int, stock: Stock, rate: float, seconds: float, heard: dict[int, deque[float]]
) -> dict[str, Any]:
    """Push to random players through one process; measure the time from the answer to the stream's event.

    Players with even numbers have their streams at that process, the others at the other one.
    """
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(32):
        free.put_nowait(await connect(port))
    lags: dict[str, list[float]] = {"same": [], "other": []}
    heard.clear()
    running = set()

    async def push(number: int, games: int) -> None:
        sender = await free.get()
        document = json.loads(stock.player(number).progress.encode())
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

    order = random.sample(stock.numbers, min(stock.players, int(rate * seconds)))
    began = time.perf_counter()
    for count, number in enumerate(order):
        await asyncio.sleep(max(0.0, began + count / rate - time.perf_counter()))
        running.add(asyncio.create_task(push(number, 100_000 + count)))
    await asyncio.gather(*running)
    return {"pushed": len(order), **{where: [len(found), *_quantiles(found)] for where, found in lags.items()}}


def compare_pushes(cells: list[Cell], plan: Plan) -> None:
    """Print a comparison of pushes to two servers."""
    one, other = cells
    pairs = compare(one, other, plan)
    for cell, rate, used in zip((one, other), pairs.medians("rate"), pairs.medians("service_us"), strict=True):
        say(f"pushes, {cell.server}: {rate:.0f} a second, {used:.0f} µs of the service")
    for name in ("rate", "service_us"):
        say(f"{name}, {one.server} to {other.server}: {pairs.ratio(name)} in {len(pairs)} pairs")


def _quantiles(times: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile, in milliseconds."""
    if len(times) < 2:
        return 0.0, 0.0
    cuts = statistics.quantiles(times, n=100)
    return 1000 * cuts[49], 1000 * cuts[98]


async def measure(here: Server, there: Server, without: Server, stage: Stage, arguments: argparse.Namespace) -> None:
    """Open streams on both processes, and measure their cost."""
    generator = stage.generator()
    heard: dict[int, deque[float]] = {}
    clients = [
        StreamClient(number, (there if number % 2 else here).port, heard) for number in stage.world.stock.numbers
    ]
    before = [memory_mib(server.pid) for server in (here, there)]
    opening = arguments.streams / arguments.opening  # seconds
    with generator.opened(route="health", port=here.port, connections=1, pause=0.01) as turn:
        watching = asyncio.create_task(asyncio.to_thread(turn, opening, {}))
        seconds = await open_all(clients, arguments.opening)
        health = await watching
    after = [memory_mib(server.pid) for server in (here, there)]
    kib = 1024 * (sum(after) - sum(before)) / arguments.streams
    say(f"{arguments.streams:,} streams opened in {seconds:.1f} s")
    say(f"/health at the same time, p50 and p99: {_shown([health['p50'], health['p99']])} ms")
    say(f"memory of the service: {kib:.1f} KiB a stream")
    used = cpu_seconds([here.pid, there.pid])
    await asyncio.sleep(IDLE_SECONDS)
    idle = used_between(used, cpu_seconds([here.pid, there.pid])) / IDLE_SECONDS
    say(f"idle: {100 * idle:.1f} % of a core")
    found = await pushes(here.port, stage.world.stock, arguments.rate, arguments.seconds, heard)
    for where in ("same", "other"):
        count, *quantiles = found[where]
        say(f"{where} process: {count:,} events, p50 and p99 after the answer: {_shown(quantiles)} ms")
    cells = [
        load_cell(generator, name, server, "push", stage.database_pids)
        for name, server in (("with streams", here), ("without", without))
    ]
    plan = Plan(seconds=TURN_SECONDS, fewest=8, most=arguments.pairs)
    await asyncio.to_thread(compare_pushes, cells, plan)
    for client in clients:
        client.leave()


def _shown(quantiles: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in quantiles)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--opening", type=float, default=200, help="streams opened a second, while /health is measured")
    parser.add_argument("--rate", type=float, default=500, help="pushes a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="the duration of the pushes")
    parser.add_argument("--pairs", type=int, default=15, help="the most pairs of turns with and without streams")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    world = World(players=arguments.streams, replays=1)
    with Stage(world) as stage:
        stage.open()
        here, there = (stage.solisync(SOLISYNC_STREAMS=arguments.streams) for _ in range(2))
        without = stage.solisync(SOLISYNC_STREAMS=0)
        asyncio.run(measure(here, there, without, stage, arguments))


if __name__ == "__main__":
    main()
