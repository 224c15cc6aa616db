"""The combined metrics of several workers: each worker keeps its own in files, and the parent reads and sums them.

This is prometheus-client's multiprocess mode, with two differences. Each file has its full size from the start
(`share`). And the files of ended workers are added up into one (`SharedMetrics.forget`), so that files don't pile up.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest, values
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from twisted.logger import Logger

from .metrics import MAX, SUM

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # names the directory for prometheus-client

# The sizes of a process's files, by kind: twice the room that all routes, methods and statuses can fill.
SUMS_BYTES = {"counter": 2**18, "histogram": 2**19}
FILE_BYTES = SUMS_BYTES | {f"gauge_{SUM}": 2**16, f"gauge_{MAX}": 2**16}
ENDED = 0  # the process id of the sums of all ended workers

_log = Logger()


def share(directory: str) -> None:
    """Keep this process's metrics in files in `directory`, the value of VARIABLE; call this before making any metric.

    The files are mapped into memory. If they grew while they fill, a full disk would end the process (SIGBUS) at the
    first request with a new status. If there is no room, the metrics stay in memory, and the sum lacks them.
    """
    try:
        _make_files(directory, os.getpid(), FILE_BYTES)
    except OSError as error:
        _log.error("the metrics will lack this worker: {why}", why=error.strerror)
    else:
        values.ValueClass = values.MultiProcessValue()


def _make_files(directory: str, pid: int, sizes: dict[str, int]) -> None:
    for kind, size in sizes.items():
        path = Path(directory, f"{kind}_{pid}.db")
        new = path.with_suffix(".new")  # a scrape must not find it before it has its full size
        try:
            with new.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
            new.rename(path)
        finally:
            new.unlink(missing_ok=True)


class SharedMetrics:
    """The parent's part: the directory of the workers' files, and the sum of their metrics."""

    def __init__(self) -> None:
        self._directory: str | None = None

    def open(self) -> dict[str, str]:
        """Make the directory, and return the variables with which a worker shares metrics; none if there is no room."""
        try:
            self._directory = tempfile.mkdtemp(prefix="solisync-metrics-")
            _make_files(self._directory, ENDED, SUMS_BYTES)
        except OSError as error:
            _log.error("no room for the metrics of workers: {why}", why=error)
            self.close()
            return {}
        return {VARIABLE: self._directory}

    def forget(self, pid: int) -> None:
        """Remove the files of an ended worker: the sum keeps its counters, and drops its gauges."""
        if self._directory is None:
            return
        try:
            mark_process_dead(pid, self._directory)
            for kind in SUMS_BYTES:
                with suppress(FileNotFoundError):  # the worker had no files
                    self._add_to_ended(kind, Path(self._directory, f"{kind}_{pid}.db"))
        except Exception as error:  # a worker killed in a write: its metrics are lost, but it must be replaced
            _log.error("the metrics of worker {pid} can't be read: {why}", pid=pid, why=type(error).__name__)

    def _add_to_ended(self, kind: str, file: Path) -> None:
        counted = list(MmapedDict.read_all_values_from_file(str(file)))
        total = MmapedDict(f"{self._directory}/{kind}_{ENDED}.db")
        for key, value, *_ in counted:
            total.write_value(key, total.read_value(key)[0] + value, 0.0)
        total.close()
        file.unlink()

    def exposition(self) -> bytes:
        """Return the metrics of all workers in Prometheus' text format; none if there is no room for them."""
        if self._directory is None:
            return b""
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._directory)
        return generate_latest(registry)

    def close(self) -> None:
        """Remove the directory."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
