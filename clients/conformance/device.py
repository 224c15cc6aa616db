"""A device: the driver of a client, its store, and the proxy through which it reaches the service."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

from .proxy import Proxy

ANSWER_SECONDS = 60.0
LINE_BYTES = 1_048_576


class Failed(Exception):
    """A command failed; `code` is the driver's, or `killed` if the driver was killed during the command."""

    def __init__(self, command: str, code: str, retry_after: float | None = None) -> None:
        super().__init__(f"{command}: {code}")
        self.code = code
        self.retry_after = retry_after


class Broken(Exception):
    """The driver broke the protocol."""


class Driver:
    """A driver's process."""

    def __init__(self, program: list[str], trace: bool) -> None:
        self._program = program
        self._trace = trace
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process."""
        self._process = await asyncio.create_subprocess_exec(
            *self._program,
            stdin=PIPE,
            stdout=PIPE,
            stderr=None if self._trace else asyncio.subprocess.DEVNULL,
            limit=LINE_BYTES,
            start_new_session=True,
        )
        self._reading = asyncio.ensure_future(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                if self._trace:
                    print(f"    {process.pid} < {line.decode().rstrip()}", file=sys.stderr)
                answer = json.loads(line)
                self._waiting.pop(answer["id"]).set_result(answer)
        finally:
            await process.wait()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(Failed("", "killed" if process.returncode == -signal.SIGKILL else "exited"))
            self._waiting.clear()

    async def send(self, command: dict[str, Any]) -> dict[str, Any]:
        """Send a command, and return the `ok` of its answer. Raises Failed."""
        assert self._process is not None
        assert self._process.stdin is not None
        number = next(self._ids)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": number, **command})
        if self._trace:
            print(f"    {self._process.pid} > {line[:300]}", file=sys.stderr)
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()
        try:
            answer = await asyncio.wait_for(future, ANSWER_SECONDS)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            raise Broken(f"{command['do']} has no answer after {ANSWER_SECONDS:.0f} seconds") from None
        if isinstance(answer.get("ok"), dict):
            return dict(answer["ok"])
        error = answer.get("error")
        if not isinstance(error, dict) or not isinstance(error.get("code"), str):
            raise Broken(f"the answer to {command['do']} has neither ok nor error: {answer}")
        raise Failed(command["do"], error["code"], error.get("retry_after"))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children."""
        assert self._process is not None
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def kill(self) -> None:
        """Kill the process, and wait for its end."""
        if self._process is not None:
            self.signal(signal.SIGKILL)
            await self._process.wait()
            await asyncio.gather(self._reading, return_exceptions=True)

    @property
    def runs(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None


class Drivers:
    """Drivers that run one program; they are used again by other scenarios, with other stores."""

    def __init__(self, program: list[str], *, trace: bool = False) -> None:
        self._program = program
        self._trace = trace
        self._free: list[Driver] = []
        self._all: list[Driver] = []

    async def take(self) -> Driver:
        """Return a driver that isn't in use."""
        while self._free:
            if (driver := self._free.pop()).runs:
                return driver
        driver = Driver(self._program, self._trace)
        self._all.append(driver)
        await driver.start()
        return driver

    def give_back(self, driver: Driver) -> None:
        """Keep a driver for another device."""
        self._free.append(driver)

    async def end(self) -> None:
        """Kill all drivers."""
        for driver in self._all:
            await driver.kill()


class Device:
    """A device of a scenario. `account` is the name of its account in the scenario, or None while it is signed out."""

    def __init__(self, name: str, proxy: Proxy, url: str, store: Path, drivers: Drivers) -> None:
        self.name = name
        self.proxy = proxy
        self.account: str | None = None
        self.can: list[str] = []
        self.clock = 0.0
        self.store = store
        self._url = url
        self._drivers = drivers
        self._driver: Driver | None = None
        self._starting = asyncio.Lock()

    async def do(self, command: str, **fields: Any) -> dict[str, Any]:
        """Send a command. After a kill, start the driver again and raise Failed with the code `killed`."""
        await self.start()
        assert self._driver is not None
        try:
            return await self._driver.send({"do": command, **fields})
        except Failed as failure:
            if failure.code == "exited":
                raise Broken(f"the driver has exited during {command}") from None
            if failure.code == "killed":
                await self.start()
                raise Failed(command, "killed") from None
            raise

    async def start(self) -> dict[str, Any]:
        """Start the driver and open the store, unless the driver runs."""
        async with self._starting:
            if self._driver is not None and self._driver.runs:
                return {}
            driver = await self._drivers.take()
            command = {"do": "open", "url": self._url, "store": str(self.store), "clock": self.clock}
            opened = await driver.send(command)
            self._driver, self.can = driver, opened.get("can", [])
            return opened

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the driver."""
        if self._driver is not None:
            self._driver.signal(number)

    async def kill(self) -> None:
        """Kill the driver."""
        if self._driver is not None:
            await self._driver.kill()

    async def end(self) -> None:
        """Close the proxy, and give the driver back."""
        await self.proxy.close()
        if self._driver is not None and self._driver.runs:
            self.signal(signal.SIGCONT)
            self._drivers.give_back(self._driver)
