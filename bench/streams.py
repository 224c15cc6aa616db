"""Clients of streams of live events, for their benchmark."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from .world import Player

PER_ADDRESS = 5  # streams of an address, few enough for any setting
OPENING = 200  # streams that may be opening at the same time


class StreamClient(asyncio.Protocol):
    """A client of a stream, which notes the times of events of pushes."""

    def __init__(self, number: int, port: int, heard: dict[int, deque[float]]) -> None:
        self.number = number
        self.port = port
        self._ready: asyncio.Future[None]
        self._heard = heard
        self._retry = 1.0
        self._request = (
            f"GET /api/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {Player(number).access.decode()}\r\n\r\n"
        ).encode()

    async def open(self) -> None:
        """Open the stream, and wait until it has begun."""
        loop = asyncio.get_running_loop()
        place = self.number // PER_ADDRESS
        address = f"127.1.{place // 250}.{1 + place % 250}"
        while True:
            self._ready = loop.create_future()
            try:
                await loop.create_connection(lambda: self, "127.0.0.1", self.port, local_addr=(address, 0))
                await self._ready
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
            elif line == b"event: hello" and not self._ready.done():
                self._ready.set_result(None)
            elif line == b"event: progress":
                self._heard.setdefault(self.number, deque()).append(time.perf_counter())
            elif line.startswith(b"HTTP/1.1 ") and not line.startswith(b"HTTP/1.1 200"):
                self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._ready.done():
            self._ready.set_exception(OSError("refused"))

    def leave(self) -> None:
        """Hang up."""
        self._transport.abort()


async def open_all(clients: Sequence[StreamClient], rate: float | None = None) -> float:
    """Open these streams, at `rate` a second or as fast as possible; return the seconds that it took."""
    gate = asyncio.Semaphore(OPENING)

    async def open_one(client: StreamClient) -> None:
        async with gate:
            await client.open()

    began = time.perf_counter()
    opening = []
    for count, client in enumerate(clients):
        if rate is not None:
            await asyncio.sleep(max(0.0, began + count / rate - time.perf_counter()))
        opening.append(asyncio.create_task(open_one(client)))
    await asyncio.gather(*opening)
    return time.perf_counter() - began
