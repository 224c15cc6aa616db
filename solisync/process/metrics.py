"""What the service counts and measures, and the listener where Prometheus fetches it.

One process keeps its numbers in memory. Workers keep theirs in files that their parent reads and sums, which is
prometheus-client's own way; but each file gets all its room at once (`share`), and of those who have left only the sum
is kept (`Shared.forget`). A number that is costly or changes all the time, like the connections in use, is sampled once
a second instead of being kept up.
"""

import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.web import server
from twisted.web.http import Request
from twisted.web.resource import Resource
from twisted.web.server import Site

from twisted import __version__ as twisted_version

from .. import __version__
from ..errors import FatalError

SAMPLE_SECONDS = 1.0
REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# Of the files of one process: twice as much as all routes, methods and statuses can fill.
SUMS_BYTES = {"counter": 2**18, "histogram": 2**19}
FILE_BYTES = SUMS_BYTES | {"gauge_livesum": 2**16, "gauge_livemax": 2**16}
GONE = 0  # in the place of a process id: those that have left

_log = Logger()

# Whatever PROMETHEUS_MULTIPROC_DIR may say, which perhaps was meant for others: only `share` makes files.
values.ValueClass = values.MutexValue
disable_created_metrics()  # when each counter began: as many samples again, which nobody asks for


class Metrics:
    """The numbers of one process, by the names that docs/metrics.md lists."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"solisync_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"solisync_{name}_seconds", text, labels, buckets=buckets, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"solisync_{name}", text, labels, registry=registry, multiprocess_mode="livesum")

        self.requests = counter("http_requests", "Requests answered.", "method", "route", "status")
        self.request_seconds = histogram(
            "http_request",
            "From the request line to the answer.",
            REQUEST_BUCKETS,
            "method",
            "route",
        )
        self.hash_seconds = histogram("hash_wait", "How long a password waited to be hashed.", REQUEST_BUCKETS)
        self.password_hash_queue = gauge("password_hash_queue", "Passwords that wait to be hashed.")
        self.connections = gauge("database_connections", "Connections in the pool.", "state")
        self.waiting = gauge("database_waiting", "Requests that wait for a connection.")
        self.connections_lost = counter("database_connections_lost", "Connections that were lost and replaced.")
        self.refusals = counter("rate_limit_refusals", "Requests refused by a rate limit.", "limit")
        self.refresh_token_reuse = counter("refresh_token_reuse", "Refresh tokens presented that were spent already.")
        self.merges = counter("sync_merges", "Pushes merged.")
        self.conflicts = counter("sync_conflicts", "Conflicts that pushes reported.", "field")
        self.events = counter("analytics_events", "Analytics events received.", "outcome")
        self.lag_seconds = histogram("reactor_lag", "How late the reactor was for a timer.", LAG_BUCKETS)
        self.memory = gauge("resident_memory_bytes", "Memory of the serving processes.")
        self.descriptors = gauge("open_files", "Open file descriptors of the serving processes.")
        self._labelled = cache(self._label)  # there are only so many
        self._replaced = 0
        build = Gauge(
            "solisync_build_info",
            "What runs; always 1.",
            ["version", "python", "twisted"],
            registry=registry,
            multiprocess_mode="livemax",
        )
        build.labels(__version__, platform.python_version(), twisted_version).set(1)
        for limit in ("auth", "analytics"):
            self.refusals.labels(limit)
        for field in ("win_streak_current", "daily_challenge_streak"):
            self.conflicts.labels(field)
        for outcome in ("accepted", "duplicate", "rejected"):
            self.events.labels(outcome)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        requests, request_seconds = self._labelled(method, route, status)
        requests.inc()
        request_seconds.observe(seconds)

    def _label(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        return self.requests.labels(method, route, status), self.request_seconds.labels(method, route)

    def pool(self, *, used: int, idle: int, waiting: int, replaced: int) -> None:
        """What the database's pool is doing; `replaced` is how many connections it has lost since it began."""
        self.connections.labels("used").set(used)
        self.connections.labels("idle").set(idle)
        self.waiting.set(waiting)
        self.connections_lost.inc(replaced - self._replaced)
        self._replaced = replaced

    def exposition(self) -> bytes:
        """All numbers in Prometheus' text format."""
        return generate_latest(self.registry)


class Sampler:
    """Looks once a second at what changes too often to be counted: `look` sets the gauges of the service's parts."""

    def __init__(self, *, metrics: Metrics, reactor: ReactorBase, look: Callable[[], None]) -> None:
        self._metrics = metrics
        self._reactor = reactor
        self._look = look
        self._next: IDelayedCall | None = None

    def start(self) -> None:
        """Sample now and from now on."""
        self._sample()
        self._due = self._reactor.seconds() + SAMPLE_SECONDS
        self._next = self._reactor.callLater(SAMPLE_SECONDS, self._again)

    def stop(self) -> None:
        """Sample no more."""
        if self._next is not None and self._next.active():
            self._next.cancel()

    def _again(self) -> None:
        self._metrics.lag_seconds.observe(max(0.0, self._reactor.seconds() - self._due))
        self.start()

    def _sample(self) -> None:
        self._look()
        with suppress(OSError):  # where there is no /proc, these two stay 0
            self._metrics.memory.set(int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * PAGE_BYTES)
            self._metrics.descriptors.set(len(os.listdir("/proc/self/fd")))


def share(directory: str) -> None:
    """Keep this process' numbers in files, in the directory that PROMETHEUS_MULTIPROC_DIR names.

    The files are mapped into memory. Were they to grow as they fill, a full disk would end the process (SIGBUS), at
    whichever request is the first with a new status. When there is no room the numbers stay in memory, untold.
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


class Shared:
    """The numbers of all workers, from the files that they keep in a directory."""

    def __init__(self) -> None:
        self._directory: str | None = None

    def open(self) -> dict[str, str]:
        """Make the directory; returns what a worker needs in its environment to take part. Raises FatalError."""
        try:
            self._directory = tempfile.mkdtemp(prefix="solisync-metrics-")
            _make_files(self._directory, GONE, SUMS_BYTES)
        except OSError as error:
            self.close()
            raise FatalError(f"solisync: no room for the metrics of workers: {error}") from None
        return {"PROMETHEUS_MULTIPROC_DIR": self._directory}

    def forget(self, pid: int) -> None:
        """A worker has ended: its gauges count no more, what it has counted stays."""
        if self._directory is None:
            return
        try:
            mark_process_dead(pid, self._directory)
            for kind in SUMS_BYTES:
                with suppress(FileNotFoundError):  # it shared nothing
                    self._add_to_those_gone(kind, Path(self._directory, f"{kind}_{pid}.db"))
        except Exception as error:  # it died while it wrote: its numbers are lost, but it must be replaced
            _log.error("the numbers of worker {pid} can't be read: {why}", pid=pid, why=type(error).__name__)

    def _add_to_those_gone(self, kind: str, file: Path) -> None:
        counted = list(MmapedDict.read_all_values_from_file(str(file)))
        total = MmapedDict(f"{self._directory}/{kind}_{GONE}.db")
        for key, value, *_ in counted:
            total.write_value(key, total.read_value(key)[0] + value, 0.0)
        total.close()
        file.unlink()

    def exposition(self) -> bytes:
        """All numbers in Prometheus' text format."""
        registry = CollectorRegistry()
        MultiProcessCollector(registry, self._directory)
        return generate_latest(registry)

    def close(self) -> None:
        """Remove the directory."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def scrape_site(exposition: Callable[[], bytes]) -> Site:
    """What answers GET /metrics; for a listener of its own, because it asks nobody who they are."""
    root = Resource()
    root.putChild(b"metrics", _Exposition(exposition))
    return _QuietSite(root, requestFactory=_Scrape, parsePOSTFormSubmission=False)


class _Scrape(server.Request):
    def gotLength(self, length: int | None) -> None:
        self.content = BytesIO()  # Twisted would make a file for a long body

    def handleContentChunk(self, data: bytes) -> None:
        self.loseConnection()  # a scrape has no body


class _QuietSite(Site):
    noisy = False
    displayTracebacks = False

    def logPrefix(self) -> str:
        return "Metrics"

    def log(self, request: Request) -> None:
        """Say nothing: a scrape comes every few seconds."""


class _Exposition(Resource):
    isLeaf = True

    def __init__(self, exposition: Callable[[], bytes]) -> None:
        super().__init__()
        self._exposition = exposition

    def render_GET(self, request: Request) -> bytes:
        request.setHeader("Content-Type", CONTENT_TYPE_LATEST)
        return self._exposition()
