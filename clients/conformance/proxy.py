"""The proxy between one device and the service, which loses, delays, repeats and invents messages as ordered."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from .messages import BEGINNINGS, GROUPS, ISSUING, Request, issued_token, read_request

LIMIT = 4 * 1_048_576  # of a line of the head, which is longer than any head
PIECE = 65_536


class Lost(Exception):
    """The connection to the device has to be closed without a whole answer."""


@dataclass
class Fault:
    """A fault for the next `times` requests of the route `on`, after `skip` others; `times` 0 means all.

    `kind` is the name of a method of Proxy; `more` has its parameters.
    """

    kind: str
    on: str = "any"
    times: int = 1
    skip: int = 0
    more: dict[str, Any] = field(default_factory=dict)
    met: int = 0

    def meets(self, request: Request) -> bool:
        """Return whether the fault concerns this request, and count it."""
        if self.on != "any" and request.route not in GROUPS.get(self.on, (self.on,)):
            return False
        self.met += 1
        return self.met > self.skip and (self.times == 0 or self.met <= self.skip + self.times)


class Proxy:
    """A local port for one device; forwards to the port that `service` returns, from the address `address`."""

    def __init__(self, service: Callable[[], int], address: str) -> None:
        self.faults: list[Fault] = []
        self.caused = 0  # how often a fault has met a request
        self.forwarded: Counter[str] = Counter()
        self.authorization = ""  # the latest such header of the device
        self._issued: list[str] = []  # the access tokens of the device's session, newest last
        self.kills: dict[str, Callable[[], Awaitable[None]]] = {}  # kills a device, the service or the database
        self._service = service
        self._address = address
        self._released = asyncio.Event()
        self._answering: set[asyncio.Task[None]] = set()

    async def open(self) -> str:
        """Listen; return the URL for the device."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=LIMIT)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def close(self) -> None:
        """Stop listening, and cut all connections."""
        self._server.close()
        await self.disconnect()

    async def disconnect(self) -> None:
        """Cut all connections."""
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    def add(self, fault: Fault) -> None:
        """Begin a fault."""
        self.faults.append(fault)

    def clear(self) -> None:
        """End all faults, and release the requests that are held."""
        self.faults.clear()
        self.release()

    def release(self) -> None:
        """Forward the requests that are held."""
        self._released.set()
        self._released = asyncio.Event()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, Lost):
                await self._answer(await read_request(reader), writer)
                await writer.drain()
                writer.close()
                return
            writer.transport.abort()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._answering.discard(task)

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.authorization = request.headers.get("authorization", self.authorization)
        request.headers["x-forwarded-for"] = self._address
        for fault in [*self.faults]:
            if fault.meets(request):
                self.caused += 1
                if await getattr(self, fault.kind)(request, writer, **fault.more):
                    return
        await self.forward(request, writer.write, writer.drain)

    async def forward(
        self, request: Request, write: Callable[[bytes], None], drain: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Send a request to the service, and pass on the pieces of the answer."""
        upstream, to_service = await asyncio.open_connection("127.0.0.1", self._service())
        self.forwarded[request.route] += 1
        answer = b""
        try:
            to_service.write(request.encode())
            while piece := await upstream.read(PIECE):
                if request.route in ISSUING:
                    answer += piece
                    self._note_token(request.route, answer)
                write(piece)
                if drain is not None:
                    await drain()
        finally:
            to_service.close()

    def _note_token(self, route: str, answer: bytes) -> None:
        token = issued_token(answer)
        if token is not None and token not in self._issued:
            self._issued = [token] if route in BEGINNINGS else [*self._issued, token]

    # The faults. Each returns whether the request has been answered.

    async def drop_request(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The request never arrives."""
        raise Lost

    async def drop_answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The request arrives, and its answer is lost."""
        await self.forward(request, lambda piece: None)
        raise Lost

    async def cut(self, request: Request, writer: asyncio.StreamWriter, bytes: int) -> bool:
        """The connection is lost after the first bytes of the answer."""
        left = bytes

        def write(piece: Any) -> None:
            nonlocal left
            writer.write(piece[:left])
            left -= len(piece)
            if left <= 0:
                raise Lost

        await self.forward(request, write, writer.drain)
        raise Lost

    async def delay(self, request: Request, writer: asyncio.StreamWriter, seconds: float) -> bool:
        """The request arrives later."""
        await asyncio.sleep(seconds)
        return False

    async def delay_answer(self, request: Request, writer: asyncio.StreamWriter, seconds: float) -> bool:
        """The answer arrives later."""
        answer = bytearray()
        await self.forward(request, answer.extend)
        await asyncio.sleep(seconds)
        writer.write(answer)
        return True

    async def hold(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The request arrives after the step `release`."""
        await self._released.wait()
        return False

    async def twice(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """A proxy on the way repeats the request; the device gets the second answer."""
        await self.forward(request, lambda piece: None)
        return False

    async def twice_then_lost(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """A proxy on the way repeats the request, and both answers are lost."""
        await self.forward(request, lambda piece: None)
        return await self.drop_answer(request, writer)

    async def late(self, request: Request, writer: asyncio.StreamWriter, seconds: float) -> bool:
        """The device gets no answer; the request arrives later."""

        async def later() -> None:
            await asyncio.sleep(seconds)
            with contextlib.suppress(ConnectionError):
                await self.forward(request, lambda piece: None)

        task = asyncio.ensure_future(later())
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        raise Lost

    async def old_token(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """The request has the access token from before the last refresh."""
        if self._issued:
            request.headers["authorization"] = f"Bearer {self._issued[-2:][0]}"
        return False

    async def answer(
        self,
        request: Request,
        writer: asyncio.StreamWriter,
        status: int,
        headers: dict[str, str] | None = None,
        body: str = "",
    ) -> bool:
        """The request never arrives; the proxy answers it."""
        content = body.encode()
        head = {"content-length": str(len(content)), "connection": "close", **(headers or {})}
        lines = [f"HTTP/1.1 {status} Refused", *(f"{name}: {text}" for name, text in head.items())]
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content)
        return True

    async def refuse(
        self, request: Request, writer: asyncio.StreamWriter, code: str, status: int, wait: int = 0
    ) -> bool:
        """The request never arrives; the proxy answers it with an error like the service's."""
        headers = {"content-type": "application/json", "error-code": code}
        if wait:
            headers["retry-after"] = str(wait)
        return await self.answer(request, writer, status, headers, json.dumps({"error": code}))

    async def kill(self, request: Request, writer: asyncio.StreamWriter, what: str, when: str = "after") -> bool:
        """The device, the service or the database is killed `before` the request arrives, `during` it, or `after` it.

        The answer is lost.
        """
        if when == "during":
            forwarding = asyncio.ensure_future(self.forward(request, lambda piece: None))
            await asyncio.sleep(0)  # the request is on its way
            await self.kills[what]()
            forwarding.cancel()
            await asyncio.gather(forwarding, return_exceptions=True)
            raise Lost
        if when == "after":
            await self.forward(request, lambda piece: None)
        await self.kills[what]()
        raise Lost
