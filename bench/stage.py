"""The processes of a benchmark: one PostgreSQL, the servers that use it, and the load generator."""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from solisync.postgres.binaries import find_binaries
from solisync.postgres.server_user import unprivileged_user

from .processes import Server, free_port, memory_mib, postgres_pids
from .proxy import DatabaseProxy
from .world import SECRET, World, populate

IDLE_SECONDS = 2.0
STARTS = 3


class Generator:
    """The process of bench/generator.py, and the commands that it takes."""

    def __init__(self, world: World) -> None:
        words = [sys.executable, "-m", "bench.generator", json.dumps(asdict(world))]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @contextmanager
    def opened(self, *loads: dict[str, Any]) -> Iterator[Callable[..., dict[str, Any]]]:
        """Open the connections of some loads, which are measured at the same time."""
        numbers = self._command("open", loads=loads)
        yield partial(self._turn, numbers)
        self._command("close", numbers=numbers)

    def _turn(
        self, numbers: list[int], seconds: float, *, most: float = inf, groups: dict[str, list[int]] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = self._command("turn", numbers=numbers, seconds=seconds, most=most, groups=groups or {})
        return result

    def _command(self, name: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([name, arguments]), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Close the generator's input, which ends it, and wait."""
        self._process.communicate()


class Stage(ExitStack):
    """A context that starts processes in a temporary directory, and stops them at its end.

    The database is the embedded PostgreSQL with its production settings. It belongs to the service that `open` starts;
    all other servers connect to it. It allows more connections if that service has two workers, so open it with two
    when several other servers follow.

    `python` is the interpreter of the environment whose solisync is started.
    """

    def __init__(self, world: World, python: Path = Path(sys.executable)) -> None:
        super().__init__()
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no process is left behind
        self.world = world
        self._python = python
        self.place = Path(self.enter_context(tempfile.TemporaryDirectory(prefix="solisync-bench-")))
        self.place.chmod(0o755)
        self.data_dir = self.place / "data"
        self.socket_dir = self.data_dir / "run"

    @property
    def dsn(self) -> str:
        return _dsn(self.socket_dir)

    def measure_starts(self) -> dict[str, float]:
        """Measure the seconds from the command until ready on an existing database, and the idle memory in MiB."""
        self._solisync().stop()
        seconds, idle = [], []
        for _ in range(STARTS):
            server = self._solisync(wait=False)
            seconds.append(server.wait_until_ready())
            time.sleep(IDLE_SECONDS)
            idle.append(memory_mib(server.pid))
            server.stop()
        return {"start_seconds": statistics.median(seconds), "idle_mib": statistics.median(idle)}

    def open(self, workers: int) -> Server:
        """Start the service that owns the database, and load the world; returns that service."""
        owner = self._solisync(SOLISYNC_WORKERS=workers)
        began = time.monotonic()
        populate(self.dsn, self.world)
        self.load_seconds = time.monotonic() - began
        return owner

    def solisync(self, *, under: Sequence[Any] = (), socket_dir: Path | None = None, **variables: Any) -> Server:
        """Start a service of one process on the same database.

        `under` are the words of another program, which runs the service, and `socket_dir` the directory of a proxy's
        socket. `variables` are added to the environment.
        """
        return self._solisync(under, DATABASE_URL=_dsn(socket_dir or self.socket_dir), **variables)

    def _solisync(self, under: Sequence[Any] = (), *, wait: bool = True, **variables: Any) -> Server:
        words = [*under, self._python, self._python.parent / "solisync"]
        return self._start(words, "/health/ready", wait=wait, **variables)

    def module(self, name: str, ready: str, database: Path | None = None) -> Server:
        """Start a yardstick that is a server: a module of this package."""
        words = [sys.executable, "-m", name]
        return self._start(words, ready, BENCH_DATABASE=database or self.socket_dir)

    def _start(self, words: Sequence[Any], ready: str, *, wait: bool = True, **variables: Any) -> Server:
        port = free_port()
        settings = {
            "JWT_SECRET": SECRET,
            "SOLISYNC_DATA_DIR": self.data_dir,
            "SOLISYNC_LISTEN": f"tcp:{port}:interface=127.0.0.1",
            "SOLISYNC_TRUSTED_PROXIES": "127.0.0.1",
            "SOLISYNC_CHECKERS": "0",  # requests are measured, and a check beside them would be noise
            "BENCH_PORT": port,
        }
        server = Server(words, port, self.place / f"{port}.log", ready, **settings | variables)
        self.callback(server.stop)
        if wait:
            server.wait_until_ready()
        return server

    def proxy(self) -> DatabaseProxy:
        """Start a proxy in front of the database, on a socket in a directory of its own."""
        directory = self.place / f"proxy-{free_port()}"
        directory.mkdir()
        return DatabaseProxy(self.socket_dir, directory)

    def generator(self) -> Generator:
        """Start a load generator for this stage's world."""
        generator = Generator(self.world)
        self.callback(generator.stop)
        return generator

    def database_pids(self) -> list[int]:
        """The pids of the processes of PostgreSQL that exist now."""
        return postgres_pids(self.data_dir)

    def program(self, name: str) -> Path:
        """The path of a program of PostgreSQL, like pgbench."""
        user = unprivileged_user() if os.geteuid() == 0 else None
        return find_binaries(self.data_dir, user) / name

    def round_trips(
        self, generator: Generator, routes: Sequence[str], *, module: str | None = None
    ) -> dict[str, float]:
        """Count the round trips to the database for a request, of solisync or of the yardstick `module`."""
        proxy = self.proxy()
        if module is None:
            server = self.solisync(socket_dir=proxy.directory)
        else:
            server = self.module(module, "/health", proxy.directory)
        counts = {}
        for route in routes:
            with generator.opened({"route": route, "port": server.port, "connections": 1}) as turn:
                before = proxy.count
                requests = turn(0.4)["loads"][0]["count"]
                counts[route] = (proxy.count - before) / requests
        server.stop()
        return counts


def _dsn(socket_dir: Path) -> str:
    return f"host={socket_dir} user=solisync dbname=postgres"
