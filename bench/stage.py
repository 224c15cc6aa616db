"""What stands during a benchmark: one PostgreSQL, the servers on it, and the generator of the load."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from solisync.postgres.binaries import find_binaries, unprivileged_user

from .processes import Server, free_port, memory_mib, postgres_pids
from .proxy import CountingProxy
from .world import SECRET, World, populate

BIN = Path(sys.executable).parent
IDLE_SECONDS = 2.0
STARTS = 3


class Generator:
    """The process that makes the load."""

    def __init__(self, world: World) -> None:
        words = [sys.executable, "-m", "bench.generator", json.dumps(asdict(world))]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(
        self,
        loads: list[dict[str, Any]],
        seconds: float,
        *,
        most: int | None = None,
        groups: dict[str, list[int]] | None = None,
    ) -> dict[str, Any]:
        """Put on these loads at once and wait for what comes of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        command = {"loads": loads, "seconds": seconds, "most": most, "groups": groups or {}}
        print(json.dumps(command), file=self._process.stdin, flush=True)
        result: dict[str, Any] = json.loads(self._process.stdout.readline())
        return result

    def stop(self) -> None:
        """End it."""
        self._process.communicate()


class Stage(ExitStack):
    """Everything that runs, and that ends with the benchmark.

    The database is the embedded one with its production settings, in the hands of the first service. One with two
    workers asks for enough connections for others on the same database.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.place = Path(self.enter_context(tempfile.TemporaryDirectory(prefix="solisync-bench-")))
        self.place.chmod(0o755)
        self.data_dir = self.place / "data"
        self.socket_dir = self.data_dir / "run"

    @property
    def dsn(self) -> str:
        return f"host={self.socket_dir} user=solisync dbname=postgres"

    def measure_starts(self) -> dict[str, float]:
        """From the command to ready on an existing database, and the memory of a process that has nothing to do."""
        self._solisync(stay=False)
        seconds, idle = [], []
        for _ in range(STARTS):
            server = self._solisync(wait=False)
            seconds.append(server.wait_until_ready())
            time.sleep(IDLE_SECONDS)
            idle.append(memory_mib(server.pid))
            server.stop()
        return {"start_seconds": statistics.median(seconds), "idle_mib": statistics.median(idle)}

    def open(self, workers: int) -> Server:
        """Start the owner of the database and load the world into it; returns that service."""
        owner = self._solisync(SOLISYNC_WORKERS=workers)
        began = time.monotonic()
        populate(self.dsn, self.world)
        self.load_seconds = time.monotonic() - began
        return owner

    def solisync(self) -> Server:
        """A service of one process on the same database."""
        return self._solisync(DATABASE_URL=self.dsn)

    def _solisync(self, *, wait: bool = True, stay: bool = True, **variables: Any) -> Server:
        command = [BIN / "solisync"]
        server = self._start(command, "/health/ready", wait=wait, **variables)
        if not stay:
            server.stop()
        return server

    def module(self, name: str, ready: str, database: Path | None = None) -> Server:
        """A yardstick that is a server."""
        words = [sys.executable, "-m", name]
        return self._start(words, ready, BENCH_DATABASE=database or self.socket_dir)

    def _start(self, words: list[Any], ready: str, *, wait: bool = True, **variables: Any) -> Server:
        port = free_port()
        settings = {
            "JWT_SECRET": SECRET,
            "SOLISYNC_DATA_DIR": self.data_dir,
            "SOLISYNC_LISTEN": f"tcp:{port}:interface=127.0.0.1",
            "SOLISYNC_TRUSTED_PROXIES": "127.0.0.1",
            "BENCH_PORT": port,
        }
        server = Server(words, port, self.place / f"{port}.log", ready, **settings | variables)
        self.callback(server.stop)
        if wait:
            server.wait_until_ready()
        return server

    def generator(self) -> Generator:
        """The generator for this stage's world."""
        generator = Generator(self.world)
        self.callback(generator.stop)
        return generator

    def database_pids(self) -> list[int]:
        """The processes of PostgreSQL, as many as there are now."""
        return postgres_pids(self.data_dir)

    def program(self, name: str) -> Path:
        """A program of PostgreSQL."""
        user = unprivileged_user() if os.geteuid() == 0 else None
        return find_binaries(self.data_dir, user) / name

    def round_trips(self, generator: Generator, routes: list[str], *, module: str | None = None) -> dict[str, float]:
        """Round trips to the database for each request, of solisync or of the yardstick `module`."""
        directory = self.place / f"proxy-{free_port()}"
        directory.mkdir()
        proxy = CountingProxy(self.socket_dir, directory)
        if module is None:
            server = self._solisync(DATABASE_URL=f"host={directory} user=solisync dbname=postgres")
        else:
            server = self.module(module, "/health", directory)
        counts = {}
        for route in routes:
            before = proxy.count
            result = generator.measure([{"route": route, "port": server.port, "connections": 1}], 0.4)
            counts[route] = (proxy.count - before) / result["loads"][0]["total"]
        server.stop()
        return counts
