"""Measured processes: start servers, and read their CPU time, memory and state from /proc."""

import os
import shlex
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

READY_SECONDS = 60.0


def cpu_seconds(pids: list[int]) -> dict[int, float]:
    """The CPU time of each process so far, in seconds, of all its threads together."""
    used = {}
    for pid in pids:
        with suppress(OSError):  # a process that has ended, like a worker of autovacuum
            # The clock of clock_getcpuclockid(3) is exact to the microsecond; /proc/PID/stat counts in units of 10 ms.
            used[pid] = time.clock_gettime(~pid << 3 | 2)
    return used


def used_between(before: dict[int, float], after: dict[int, float]) -> float:
    """The CPU time used between two calls of `cpu_seconds`, by the processes that exist in both."""
    return sum(after[pid] - before[pid] for pid in before.keys() & after.keys())


def memory_mib(pid: int, field: str = "VmRSS") -> float:
    """Resident memory of a process in MiB: the present (VmRSS) or the peak (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(field)


def children(pid: int) -> list[int]:
    """The pids of the running child processes."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def is_running(pid: int) -> bool:
    """Whether the main thread of the process is working, and not blocked in a system call like epoll_wait."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] in "RD"
    except FileNotFoundError:  # the process has ended
        return False


def postgres_pids(data_dir: Path) -> list[int]:
    """The pids of all processes of the embedded PostgreSQL in this data directory."""
    postmaster = int((data_dir / "postgresql" / "postmaster.pid").read_text("utf-8").split()[0])
    return [postmaster, *children(postmaster)]


def free_port() -> int:
    """A TCP port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A server process; the path `ready` returns 200 as soon as the server is ready."""

    def __init__(self, words: Sequence[Any], port: int, log: Path, ready: str, **variables: Any) -> None:
        self.port = port
        self._url = f"http://127.0.0.1:{port}{ready}"
        foreign = ("SOLISYNC_", "PG", "JWT_", "DATABASE_URL")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self._words = [str(word) for word in words]
        self._began = time.monotonic()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self._words,
                env=inherited | {name: str(value) for name, value in variables.items()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> float:
        """Poll until the server is ready, and return the seconds since the start of the process.

        Raises SystemExit with the end of the log if that takes more than READY_SECONDS, or if the process ends.
        """
        while time.monotonic() < self._began + READY_SECONDS and self._process.poll() is None:
            try:
                urllib.request.urlopen(self._url, timeout=5).close()
            except OSError:
                time.sleep(0.02)
            else:
                return time.monotonic() - self._began
        self.stop()
        raise SystemExit(f"{shlex.join(self._words)} isn't ready: {self._log.read_text('utf-8', 'replace')[-2000:]}")

    def pause(self) -> None:
        """Stop the process, so that it doesn't affect others; its children continue."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End the pause."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Send SIGTERM and wait for the process to end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(30)
