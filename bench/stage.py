"""The processes of a benchmark: a PostgreSQL, the servers that use it, and the load generator."""

import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .processes import Server, free_port, memory_mib, postgres_pids
from .proxy import DatabaseProxy
from .world import SECRET, World, populate

IDLE_SECONDS = 2.0
STARTS = 3


class Generator:
    """The process of bench/generator.py, and its commands."""

    def __init__(self, world: World) -> None:
        words = [sys.executable, "-m", "bench.generator", json.dumps(asdict(world))]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @contextmanager
    def opened(self, **load: Any) -> Iterator[Callable[[float, dict[str, list[int]]], dict[str, Any]]]:
        """Open the connections of a load; yield a function that measures a turn of it."""
        number = self._command("open", **load)
        yield lambda seconds, groups: self._command("turn", number=number, seconds=seconds, groups=groups)
        self._command("close", number=number)

    def _command(self, name: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([name, arguments]), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Close the generator's input and wait for its end."""
        self._process.communicate()


class Stage(ExitStack):
    """A context that starts processes in a temporary directory, and stops them at its end.

    The database is the embedded PostgreSQL with its production settings. The service that `open` starts owns it; all
    other servers connect to it. `python` is the interpreter of the environment whose solisync is started.
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
        """Measure the seconds from the command to ready on an existing database, and the idle memory in MiB."""
        self._solisync().stop()
        seconds, idle = [], []
        for _ in range(STARTS):
            server = self._solisync(wait=False)
            seconds.append(server.wait_until_ready())
            time.sleep(IDLE_SECONDS)
            idle.append(memory_mib(server.pid))
            server.stop()
        return {"start_seconds": statistics.median(seconds), "idle_mib": statistics.median(idle)}

    def open(self) -> Server:
        """Start the service that owns the database, load the world, and return the service."""
        owner = self._solisync()
        began = time.monotonic()
        populate(self.dsn, self.world)
        self.load_seconds = time.monotonic() - began
        return owner

    def solisync(self, *, under: Sequence[Any] = (), socket_dir: Path | None = None, **variables: Any) -> Server:
        """Start a service of one process on the same database.

        `under` is the command line of a program that runs the service, and `socket_dir` the directory of a proxy's
        socket. `variables` are added to the environment.
        """
        return self._solisync(under, DATABASE_URL=_dsn(socket_dir or self.socket_dir), **variables)

    def _solisync(self, under: Sequence[Any] = (), *, wait: bool = True, **variables: Any) -> Server:
        words = [*under, self._python, self._python.parent / "solisync"]
        return self._start(words, "/health/ready", wait=wait, **variables)

    def fastapi(self) -> Server:
        """Start the peer on the same database."""
        return self._start([sys.executable, "-m", "bench.peer_fastapi"], "/health", BENCH_DATABASE=self.socket_dir)

    def _start(self, words: Sequence[Any], ready: str, *, wait: bool = True, **variables: Any) -> Server:
        port = free_port()
        settings = {
            "JWT_SECRET": SECRET,
            "SOLISYNC_DATA_DIR": self.data_dir,
            "SOLISYNC_LISTEN": f"tcp:{port}:interface=127.0.0.1",
            "SOLISYNC_TRUSTED_PROXIES": "127.0.0.1",
            "SOLISYNC_CHECKERS": "0",  # checks would disturb the measurement of requests
            "BENCH_PORT": port,
        }
        server = Server(words, port, self.place / f"{port}.log", ready, **settings | variables)
        self.callback(server.stop)
        if wait:
            server.wait_until_ready()
        return server

    def proxy(self) -> DatabaseProxy:
        """Start a proxy in front of the database, on a socket in its own directory."""
        directory = self.place / f"proxy-{free_port()}"
        directory.mkdir()
        return DatabaseProxy(self.socket_dir, directory)

    def generator(self) -> Generator:
        """Start a load generator for this stage's world."""
        generator = Generator(self.world)
        self.callback(generator.stop)
        return generator

    def database_pids(self) -> list[int]:
        """The pids of the present processes of PostgreSQL."""
        return postgres_pids(self.data_dir)


def _dsn(socket_dir: Path) -> str:
    return f"host={socket_dir} user=solisync dbname=postgres"
