"""Counters, gauges and histograms of one process, as docs/metrics.md lists them.

A process keeps them in memory, a worker in files (solisync.process.shared_metrics). Values that would be expensive to
update at each change, like the number of connections in use, are sampled once a second.
"""

import os
import platform
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, Literal, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    values,
)
from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IDelayedCall

from twisted import __version__ as twisted_version

from .. import __version__
from ..klondike import Status
from ..rules.events import NAMES, EndReason

SAMPLE_SECONDS = 1.0
REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# The multiprocess modes of prometheus-client, which combine the gauges of several workers.
SUM: Final = "livesum"
MAX: Final = "livemax"

# prometheus-client would keep numbers in files whenever PROMETHEUS_MULTIPROC_DIR is set, even for another program. Here
# only solisync.process.shared_metrics decides that.
values.ValueClass = values.MutexValue
disable_created_metrics()  # they double the samples, and none of our queries needs them


class Metrics:
    """The metrics of one process.

    `limits`, `merge_bases`, `conflict_fields` and `jobs` are label values that are exported as 0 from the start, so
    that Prometheus sees the first increase.
    """

    def __init__(
        self,
        *,
        limits: Iterable[str] = (),
        merge_bases: Iterable[str] = (),
        conflict_fields: Iterable[str] = (),
        jobs: Iterable[str] = (),
    ) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"solisync_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"solisync_{name}_seconds", text, labels, buckets=buckets, registry=registry)

        def gauge(name: str, text: str, *labels: str, mode: Literal["livesum", "livemax"] = SUM) -> Gauge:
            return Gauge(f"solisync_{name}", text, labels, registry=registry, multiprocess_mode=mode)

        self.requests = counter("http_requests", "Requests answered.", "method", "route", "status")
        self.request_seconds = histogram(
            "http_request",
            "Time from the request line to the answer.",
            REQUEST_BUCKETS,
            "method",
            "route",
        )
        self.hash_seconds = histogram("hash_wait", "Time that a password waited to be hashed.", REQUEST_BUCKETS)
        self.password_hash_queue = gauge("password_hash_queue", "Passwords that wait to be hashed.")
        self.connections = gauge("database_connections", "Connections in the pool.", "state")
        self.server_connections = gauge("database_server_connections", "Connections in the pool, by server.", "server")
        self.waiting = gauge("database_waiting", "Requests that wait for a connection.")
        self.connections_lost = counter("database_connections_lost", "Connections that were lost and replaced.")
        self._refusals = counter("rate_limit_refusals", "Requests refused by a rate limit.", "limit")
        self.logins = counter("logins", "Logins attempted, and passwords recovered or reset.", "outcome")
        self.suspended = gauge("suspended_players", "Suspended players.", mode=MAX)
        self.guests = gauge("guests", "Guests (accounts without a password).", mode=MAX)
        self.last_backup = gauge(
            "last_backup_timestamp_seconds", "When `solisync backup` last finished; 0 if never.", mode=MAX
        )
        self.last_runs = gauge(
            "housekeeping_last_run_timestamp_seconds",
            "When a job last ran without failing; 0 if never.",
            "name",
            mode=MAX,
        )
        self.retention_behind = gauge(
            "retention_behind_seconds", "How far the retention clock is behind the database's clock.", mode=MAX
        )
        self.ready = gauge("ready", "Serving processes that reach the database.")
        self.reset_links = gauge("reset_links_open", "Reset links that are still valid.", mode=MAX)
        self.history_lost = counter("history_lost", "Events of accounts that could not be stored.")
        self.refresh_repeats = counter("refresh_repeats", "Refreshes repeated after a lost answer.")
        self.refresh_token_reuse = counter("refresh_token_reuse", "Refresh tokens presented after their use.")
        self.merges = counter("sync_merges", "Pushes merged, by the basis of the merge.", "basis")
        self.conflicts = counter("sync_conflicts", "Conflicts that pushes reported.", "field")
        self.games = counter("games", "Finished games received by their ids.", "outcome")
        self.events = counter("analytics_events", "Analytics events received.", "outcome")
        self.verdicts = counter("replay_verdicts", "Verdicts on replays.", "status")
        self.timelines = counter("timelines", "Timelines answered, new or from memory.", "source")
        self.check_cpu = counter("replay_check_cpu_seconds", "Processor time of checks of replays.")
        self.checks_waiting = gauge("replay_checks_waiting", "Replays that wait to be checked.", "queue", mode=MAX)
        self.checks_oldest = gauge("replay_checks_oldest_seconds", "Time that the oldest upload has waited.", mode=MAX)
        self.streams = gauge("streams", "Open streams of events.")
        self.streams_opened = counter("streams_opened", "Streams of events opened.")
        self.streams_ended = counter("streams_ended", "Streams of events ended.", "reason")
        self.stream_events = counter("stream_events", "Events written to streams.", "event")
        self.stream_events_coalesced = counter("stream_events_coalesced", "Queued events that newer ones replaced.")
        self.bus_batches = counter("bus_batches", "Batches for the bus.", "outcome")
        self.bus_lag = histogram("bus_lag", "From sending a batch to receiving it back.", REQUEST_BUCKETS)
        self.live_faults = counter("live_faults", "Faults of live events.", "kind")
        self.bus_deaf = gauge("bus_deaf", "Processes that don't receive other processes' batches.")
        self.lag_seconds = histogram("reactor_lag", "Delay of the reactor's timers.", LAG_BUCKETS)
        self.memory = gauge("resident_memory_bytes", "Memory of the serving processes.")
        self.descriptors = gauge("open_files", "Open file descriptors of the serving processes.")
        build = gauge("build_info", "The running versions; always 1.", "version", "python", "twisted", mode=MAX)
        build.labels(__version__, platform.python_version(), twisted_version).set(1)
        for limit in limits:
            self._refusals.labels(limit)
        for field in conflict_fields:
            self.conflicts.labels(field)
        for job in jobs:
            self.last_runs.labels(job)
        for basis in merge_bases:
            self.merges.labels(basis)
        for outcome in ("ok", "wrong", "suspended", "recovered", "reset", "recovery_refused"):
            self.logins.labels(outcome)
        for outcome in ("counted", "known", "refused"):
            self.games.labels(outcome)
        for outcome in ("accepted", "duplicate", "rejected"):
            self.events.labels(outcome)
        for outcome in ("sent", "dropped"):
            self.bus_batches.labels(outcome)
        for source in ("made", "remembered"):
            self.timelines.labels(source)
        for kind in ("dropped", "missed", "unknown", "database", "error"):
            self.live_faults.labels(kind)
        for reason in (*get_args(EndReason), "left", "unread"):
            self.streams_ended.labels(reason)
        for name in NAMES.values():
            self.stream_events.labels(name)
        for status in Status:
            if status is not Status.PENDING:
                self.verdicts.labels(status.value)
        self.checks(0, 0, 0, 0.0)
        # Fast path: two calls of `labels` for each request, with other changes 37 of 157 µs at GET /health, see
        # docs/performance.md. There are only so many combinations.
        self._labelled = cache(self._label)
        self._replaced = 0
        self._servers: set[str] = set()

    def answered(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count an answer, and its time unless that is None."""
        requests, request_seconds = self._labelled(method, route, status)
        requests.inc()
        if seconds is not None:
            request_seconds.observe(seconds)

    def refused(self, limit: str) -> None:
        """Count a request that this limit refused."""
        self._refusals.labels(limit).inc()

    def _label(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        return self.requests.labels(method, route, status), self.request_seconds.labels(method, route)

    def pool(
        self, *, used: int, idle: int, abandoned: int, waiting: int, replaced: int, servers: Mapping[str, int]
    ) -> None:
        """Set the gauges of the connection pool.

        `replaced` is the number of connections lost since the start, `servers` the number of those to each server.
        """
        for state, count in (("used", used), ("idle", idle), ("abandoned", abandoned)):
            self.connections.labels(state).set(count)
        for server in self._servers - servers.keys():
            self.server_connections.labels(server).set(0)
        for server, count in servers.items():
            self.server_connections.labels(server).set(count)
        self._servers |= servers.keys()
        self.waiting.set(waiting)
        self.connections_lost.inc(replaced - self._replaced)
        self._replaced = replaced

    def housekeeping(
        self, *, reset_links: int, guests: int, backed_up: float, behind: float, last_runs: Mapping[str, float]
    ) -> None:
        """Set the gauges that housekeeping reads from the database."""
        self.reset_links.set(reset_links)
        self.guests.set(guests)
        self.last_backup.set(backed_up)
        self.retention_behind.set(behind)
        for name, when in last_runs.items():
            self.last_runs.labels(name).set(when)

    def checks(self, literal: int, search: int, old: int, oldest_seconds: float) -> None:
        """Set the gauges of the queues of replays: the length of each, and the wait of the oldest upload."""
        for queue, waiting in (("literal", literal), ("search", search), ("old", old)):
            self.checks_waiting.labels(queue).set(waiting)
        self.checks_oldest.set(oldest_seconds)

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class NodeMetrics:
    """The metrics of a node, kept in memory by the process that listens for scrapes: the parent, or the only one."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.worker_deaths = Counter("solisync_worker_deaths", "Workers that ended unasked.", registry=self._registry)
        self.reload_failed = Gauge("solisync_reload_failed", "1 if the last reload failed.", registry=self._registry)

    def watch_disk(self, data_dir: Path) -> None:
        """Report the free space of the disk with this directory, an embedded database's."""
        free = Gauge("solisync_disk_free_bytes", "Free space for the embedded database.", registry=self._registry)
        free.set_function(lambda: float(shutil.disk_usage(data_dir).free))

    def exposition(self) -> bytes:
        """Return these metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class Sampler:
    """Sets the process's gauges and measures the reactor's lag once a second; `sample` sets all other gauges."""

    def __init__(self, *, metrics: Metrics, reactor: ReactorBase, sample: Callable[[], None]) -> None:
        self._metrics = metrics
        self._reactor = reactor
        self._sample = sample
        self._next: IDelayedCall | None = None

    def start(self) -> None:
        """Sample now and every second."""
        self._sample()
        with suppress(OSError):  # without /proc, these two gauges stay 0
            self._metrics.memory.set(int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * PAGE_BYTES)
            self._metrics.descriptors.set(len(os.listdir("/proc/self/fd")))
        self._due = self._reactor.seconds() + SAMPLE_SECONDS
        self._next = self._reactor.callLater(SAMPLE_SECONDS, self._again)

    def stop(self) -> None:
        """Stop sampling."""
        if self._next is not None and self._next.active():
            self._next.cancel()

    def _again(self) -> None:
        self._metrics.lag_seconds.observe(max(0.0, self._reactor.seconds() - self._due))
        self.start()
