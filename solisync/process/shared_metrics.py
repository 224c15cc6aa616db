"""The metrics of several workers as one: each keeps its own in files, their parent reads and sums them.

That is prometheus-client's multiprocess mode, but for two things: each file has all its room from the start (`share`),
and the files of workers that have ended are added up into one (`SharedMetrics.forget`), or there would be more and more
of them.
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

from ..errors import FatalError
from .metrics import MAX, SUM

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # by which prometheus-client finds the directory

# The sizes of one process's files, by their kinds: twice what all routes, methods and statuses can fill.
SUMS_BYTES = {"counter": 2**18, "histogram": 2**19}
FILE_BYTES = SUMS_BYTES | {f"gauge_{SUM}": 2**16, f"gauge_{MAX}": 2**16}
ENDED = 0  # in the place of a process id: the sums of all workers that have ended

_log = Logger()


def share(directory: str) -> None:
    """Keep this process's metrics in files in `directory`, which is also in VARIABLE; call it before any are made.

    The files are mapped into memory. If they grew as they fill, a full disk would end the process (SIGBUS), at
    whichever request is the first with a new status. When there is no room the metrics stay in memory, and are missing
    in the sum.
    """
    try:
        _make_files(directory, os.getpid(), FILE_BYTES)
    except OSError as error:
        _log.error("this worker will be missing in the metrics: {why}", why=error.strerror)
    else:
        values.ValueClass = values.MultiProcessValue()


def _make_files(directory: str, pid: int, sizes: dict[str, int]) -> None:
    for kind, size in sizes.items():
        path = Path(directory, f"{kind}_{pid}.db")
        new = path.with_suffix(".new")  # a scrape must not find it without its room
        try:
            with new.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
            new.rename(path)
        finally:
            new.unlink(missing_ok=True)


class SharedMetrics:
    """What the parent of workers has: the directory of their files, and the sum of what is in them."""

    def __init__(self) -> None:
        self._directory: str | None = None

    def open(self) -> dict[str, str]:
        """Make the directory; returns what a worker needs in its environment to take part. Raises FatalError."""
        try:
            self._directory = tempfile.mkdtemp(prefix="solisync-metrics-")
            _make_files(self._directory, ENDED, SUMS_BYTES)
        except OSError as error:
            self.close()
            raise FatalError(f"solisync: no room for the metrics of workers: {error}") from None
        return {VARIABLE: self._directory}

    def forget(self, pid: int) -> None:
        """Remove the files of a worker that has ended: its gauges count no more, its counters stay in the sum."""
        if self._directory is None:
            return
        try:
            mark_process_dead(pid, self._directory)
            for kind in SUMS_BYTES:
                with suppress(FileNotFoundError):  # it shared nothing
                    self._add_to_ended(kind, Path(self._directory, f"{kind}_{pid}.db"))
        except Exception as error:  # killed while it wrote: its metrics are lost, but it must be replaced
            _log.error("the metrics of worker {pid} can't be read: {why}", pid=pid, why=type(error).__name__)

    def _add_to_ended(self, kind: str, file: Path) -> None:
        counted = list(MmapedDict.read_all_values_from_file(str(file)))
        total = MmapedDict(f"{self._directory}/{kind}_{ENDED}.db")
        for key, value, *_ in counted:
            total.write_value(key, total.read_value(key)[0] + value, 0.0)
        total.close()
        file.unlink()

    def exposition(self) -> bytes:
        """The metrics of all workers in Prometheus' text format."""
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._directory)
        return generate_latest(registry)

    def close(self) -> None:
        """Remove the directory."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
