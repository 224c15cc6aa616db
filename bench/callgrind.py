"""A service under valgrind's callgrind, with one client, for counting the instructions of requests.

Counting is off at first: it makes the service fifty times slower, and the start doesn't matter. For repeatable counts,
hashes have a fixed seed, there is only one connection, and requests and PostgreSQL's answers arrive only while the
service sleeps. Otherwise this slow service would often find an answer immediately and save a turn of its reactor, which
never happens at its real speed.
"""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPResponse
from typing import Any

from .processes import is_running
from .stage import Stage
from .workloads import WORKLOADS, Crowd

VALGRIND = ("valgrind", "--tool=callgrind", "--instr-atstart=no")
POLL_SECONDS = 0.0005
ANSWER_SECONDS = 60


def require_valgrind() -> None:
    """Raise SystemExit if valgrind isn't installed."""
    if shutil.which("valgrind") is None or shutil.which("callgrind_control") is None:
        raise SystemExit("valgrind is not installed; on Debian: apt-get install valgrind")


class Callgrind:
    """A service of `stage` that runs under callgrind, and a client connected to it."""

    def __init__(self, stage: Stage) -> None:
        proxy = stage.proxy()
        self._dump = stage.place / "callgrind.out"
        self._dumps = 0
        self._server = stage.solisync(
            under=(*VALGRIND, f"--callgrind-out-file={self._dump}"), socket_dir=proxy.directory, PYTHONHASHSEED=0
        )
        proxy.client = self._server.pid
        self._crowd = Crowd(stage.world)
        address = "127.0.0.1", self._server.port
        self._connection = stage.enter_context(socket.create_connection(address, timeout=ANSWER_SECONDS))

    def request(self, route: str) -> None:
        """Send a request of the workload `route` and read its answer. Raises SystemExit unless the status is 200."""
        exchange = WORKLOADS[route](self._crowd)
        while is_running(self._server.pid):
            time.sleep(POLL_SECONDS)
        self._connection.sendall(next(exchange))
        answer = HTTPResponse(self._connection)
        answer.begin()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{route} fails: {answer.status} {body.decode()}")
        with suppress(StopIteration):
            exchange.send(body)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count instructions within this context."""
        self._control("--instr=on")
        yield
        self._control("--instr=off")

    def take_count(self) -> int:
        """Return the instructions of all threads since the last call."""
        self._control("--dump")  # this also resets the count
        self._dumps += 1
        with open(f"{self._dump}.{self._dumps}", encoding="utf-8") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("summary:"))

    def _control(self, *words: Any) -> None:
        command = ["callgrind_control", *words, str(self._server.pid)]
        done = subprocess.run(command, capture_output=True, text=True)
        if "OK." not in done.stdout:
            raise SystemExit(f"{' '.join(command)} fails: {done.stdout}{done.stderr}")
