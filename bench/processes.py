"""Processes under measurement: starting them, and what /proc says of their time and memory."""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
READY_SECONDS = 60.0


def cpu_seconds(pids: list[int | None]) -> dict[int | None, float]:
    """The processor time that each process has used so far, all its threads together; None is this process."""
    used = {}
    for pid in pids:
        with suppress(OSError):  # a worker of autovacuum that has gone
            fields = Path(f"/proc/{pid or 'self'}/stat").read_text("utf-8").rpartition(")")[2].split()
            used[pid] = (int(fields[11]) + int(fields[12])) / TICKS
    return used


def used_between(before: dict[int | None, float], after: dict[int | None, float]) -> float:
    """The processor time that the processes have used which were there at both moments."""
    return sum(after[pid] - before[pid] for pid in before.keys() & after.keys())


def memory_mib(pid: int, field: str = "VmRSS") -> float:
    """Resident memory now (VmRSS) or at its peak (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(field)


def children(pid: int) -> list[int]:
    """The processes that this one has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def postgres_pids(data_dir: Path) -> list[int]:
    """All processes of the embedded server in this directory."""
    postmaster = int((data_dir / "postgresql" / "postmaster.pid").read_text("utf-8").split()[0])
    return [postmaster, *children(postmaster)]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A process that serves HTTP on a port of its own."""

    def __init__(self, words: list[Any], port: int, log: Path, ready: str, **variables: Any) -> None:
        self.port = port
        self._url = f"http://127.0.0.1:{port}{ready}"
        foreign = ("SOLISYNC_", "PG", "JWT_", "DATABASE_URL")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self._began = time.monotonic()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(word) for word in words],
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

    @property
    def serving(self) -> list[int]:
        """The processes of it that serve: its workers, if it has any, else itself."""
        workers = [pid for pid in children(self.pid) if b"solisync.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        return workers or [self.pid]

    def wait_until_ready(self) -> float:
        """Wait for it to answer; returns how many seconds that took from the beginning of the process."""
        while time.monotonic() < self._began + READY_SECONDS and self._process.poll() is None:
            try:
                urllib.request.urlopen(self._url, timeout=5).close()
            except OSError:
                time.sleep(0.02)
            else:
                return time.monotonic() - self._began
        self.stop()
        raise SystemExit(f"{self._process.args} does not get ready: {self._log.read_text('utf-8', 'replace')[-2000:]}")

    def stop(self) -> None:
        """End it, politely."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(30)
