"""The parent of several worker processes at one port: it starts and replaces workers, and serves no request itself.

The parent binds the port and passes the socket to each worker, a new process of `python -m solisync.worker` that reads
its code and its settings itself. So SIGHUP, which replaces the workers one by one, also loads a new version of
solisync, and secrets that have changed in their files (docs/operations.md "Several processes").
"""

import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError, gatherResults, maybeDeferred
from twisted.internet.protocol import Factory
from twisted.logger import Logger
from twisted.python.failure import Failure

from .embedded.marks import record_use
from .embedded.server import EmbeddedPostgres
from .errors import FatalError
from .process import listening
from .process.child import Child, ending
from .process.daemon import Daemon
from .process.shared_metrics import VARIABLE, SharedMetrics
from .process.tasks import shielded
from .settings.settings import ServingSettings
from .settings.table import TABLE

# The descriptors of a worker:
# - LIFELINE, its standard input: open for as long as the worker should serve. On it the parent sends GIVE_WAY or
#   TAKE_PART: whether to leave new connections to other workers.
# - SOCKET: the listening socket.
# - READY: a pipe on which the worker reports its version when it is ready.
# - ADMIN_SOCKET: the listening socket of the console, if there is one.
LIFELINE, SOCKET, READY, ADMIN_SOCKET = 0, 3, 4, 5
GIVE_WAY, TAKE_PART = b"-", b"+"
COMMAND = (sys.executable, "-P", "-m", "solisync.worker")

REPLACE_SECONDS = 0.2  # the pause before a dead worker is replaced
REPLACE_AGAIN_SECONDS = 2.0  # the same if the worker died before it was ready
READY_SECONDS = 30.0  # if a new worker takes longer, the old one stays
STOP_MARGIN_SECONDS = 5.0  # a worker is killed this long after `stop_seconds`


def worker_environ(environ: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker: the parent's, with the options of the command line as variables."""
    given = dict(environ)
    given.pop(VARIABLE, None)  # set for another program
    for setting in TABLE:
        if (value := options.get(setting.option)) is not None:
            given[setting.variable] = value
            if setting.variable.endswith("_FILE"):  # the settings refuse a secret beside a file with it
                given.pop(setting.variable.removesuffix("_FILE"), None)
    return given


class Supervisor(Daemon):
    """The parent: it keeps the set number of workers running."""

    _log = Logger()

    def __init__(
        self,
        *,
        settings: ServingSettings,
        reactor: ReactorBase,
        environ: dict[str, str],
        embedded: EmbeddedPostgres | None,
        metrics: SharedMetrics,
        uid: int | None = None,
        log_to: int = 2,
        command: Sequence[str] = COMMAND,
    ) -> None:
        super().__init__(reactor)
        self._settings = settings
        self._environ = environ
        self._embedded = embedded
        self._metrics = metrics
        self._uid = uid
        self._log_to = log_to
        self._command = command
        self._workers: list[Worker] = []
        self._ever_ready = False
        self._reported = False  # whether the service manager knows that the start, or the last reload, has ended
        self._reload_failed = False
        self._replacing = False
        self._replace_again = False
        if embedded is not None:
            environ["DATABASE_URL"] = embedded.dsn
        if settings.listen.startswith("systemd:"):
            environ["SOLISYNC_LISTEN"] = "tcp:0"  # the parent has systemd's socket, and passes it on by descriptor
        if (settings.admin_listen or "").startswith("systemd:"):
            environ["SOLISYNC_ADMIN_LISTEN"] = "tcp:0:interface=127.0.0.1"  # for the same reason

    @property
    def _data_dir(self) -> Path | None:
        return None if self._embedded is None else self._embedded.data_dir

    def privilegedStartService(self) -> None:
        """Claim the data directory and open the port, which may need root. Raises FatalError."""
        super().privilegedStartService()
        if self._embedded is not None:
            self._embedded.claim(self._uid)
        self._port = listening.listen(self._reactor, self._settings.listen, _Unserved())
        self._sockets = {SOCKET: listening.share(self._port)}
        self._listen_for_admins(self._settings.admin_listen, _Unserved(), public=bool(self._settings.admin_hosts))
        if self._admin_port is not None:
            self._sockets[ADMIN_SOCKET] = listening.share(self._admin_port)
        self._listen_for_scrapes(self._settings.metrics_listen, self._metrics.exposition, self._data_dir)
        record_use(self._settings.data_dir, self._settings.database_url)

    def startService(self) -> None:
        """Start the workers and the embedded database; the workers wait for it."""
        super().startService()
        _close_descriptors_beyond_the_limit()
        text = f" with {self._settings.workers} workers"
        self._log_start(text, self._settings.listen, self._data_dir)
        if self._settings.metrics_listen is not None:
            self._environ |= {"SOLISYNC_METRICS_LISTEN": "", **self._metrics.open()}  # the parent listens for all
        self._on_hangup(self.replace_all)
        self.manager.status("waiting for the first worker")
        self._reactor.callWhenRunning(self._fill)  # not before, because this process must handle signals first
        if self._embedded is not None:
            Deferred.fromCoroutine(self._embedded.start()).addErrback(self._give_up)

    async def _stop(self) -> None:
        """Close the port, let every worker drain, then stop the embedded database."""
        for port in (self._port, self._admin_port):
            if port is not None:
                await maybeDeferred(port.stopListening)  # a worker accepts the connections that wait there
        await gatherResults([Deferred.fromCoroutine(self._retire(worker)) for worker in self._workers])
        if self._embedded is not None:
            await self._embedded.stop()
        await self._stop_listening_for_scrapes()
        self._metrics.close()
        self._log.info("stopped")

    def _fill(self) -> None:
        """Start workers until their number is the set one."""
        try:
            while not self._stopping and sum(worker.counts for worker in self._workers) < self._settings.workers:
                self._start()
        except OSError as error:
            self._log.error("can't start a worker: {why}", why=error.strerror)
            self._reactor.callLater(REPLACE_AGAIN_SECONDS, self._fill)

    def _start(self, *, successor_of: "Worker | None" = None) -> "Worker":
        """Start a worker; a successor doesn't count until it is ready. One worker has the checkers of this node."""
        if successor_of is None:
            worker = Worker(counts=True, checks=not any(each.checks for each in self._workers if each.counts))
        else:
            worker = Worker(counts=False, checks=successor_of.checks)
        environ = self._environ if worker.checks else {**self._environ, "SOLISYNC_CHECKERS": "0"}
        descriptors: dict[int, str | int] = {LIFELINE: "w", 1: 1, 2: self._log_to, READY: "r", **self._sockets}
        worker.start(self._reactor, self._command, environ, descriptors)
        self._workers.append(worker)
        worker.ready.addCallback(self._on_ready, worker)
        worker.ended.addCallback(self._on_end, worker)
        return worker

    def _on_ready(self, ready: bool, worker: "Worker") -> bool:
        if ready:
            self._ever_ready = worker.was_ready = True
            self._log.info("worker {pid} is ready", pid=worker.pid)
            self._report()
        return ready

    def _report(self) -> None:
        """Report that the start or the reload has ended, if a worker serves."""
        serves = any(worker.counts and worker.was_ready for worker in self._workers)
        if serves and not (self._reported or self._replacing or self._stopping):
            self._reported = True
            text = f"serving with {self._settings.workers} workers of version {_versions(self._workers)}"
            if self._reload_failed:
                text = "the last reload failed, see the log: the old workers serve"
            self.manager.ready(text)

    def _on_end(self, status: int, worker: "Worker") -> int:
        self._workers.remove(worker)
        self._metrics.forget(worker.pid)
        if not worker.counts or self._stopping:
            return status
        if status == 1 and not self._ever_ready:  # the next worker would fail for the same reason, which is logged
            self._give_up(Failure(FatalError("solisync: the workers can't start; the lines above give the reason")))
            return status
        self._node.worker_deaths.inc()
        self._log.error("worker {pid} ended {how}, starting another", pid=worker.pid, how=ending(status))
        self._reactor.callLater(REPLACE_SECONDS if worker.was_ready else REPLACE_AGAIN_SECONDS, self._fill)
        return status

    def _tell(self, workers: list["Worker"], word: bytes) -> None:
        for worker in workers:
            if worker in self._workers and worker.counts:
                worker.tell(word)

    async def _retire(self, worker: "Worker") -> None:
        """Stop a worker without replacing it: gracefully, or by a kill if that takes too long."""
        worker.counts = False
        worker.leave()
        try:
            await shielded(worker.ended).addTimeout(self._settings.stop_seconds + STOP_MARGIN_SECONDS, self._reactor)
        except TimeoutError:
            self._log.error("worker {pid} didn't stop in time, killing it", pid=worker.pid)
            worker.signal(signal.SIGKILL)

    def replace_all(self) -> None:
        """Replace the workers one by one, so that no request is refused or dropped."""
        self._read_certificates()  # of the listener for scrapes, which is the parent's
        self._replace_again = True
        if not self._replacing:
            self._replacing = True
            self._reported = False
            self.manager.reloading()
            Deferred.fromCoroutine(self._replace_all()).addErrback(
                lambda failure: self._log.failure("could not replace the workers", failure)
            )

    async def _replace_all(self) -> None:
        self._reload_failed = True
        try:
            while self._replace_again and not self._stopping:
                self._replace_again = False
                self._log.info("replacing the workers")
                old = [worker for worker in self._workers if worker.counts]
                before = _versions(old)
                try:
                    self._reload_failed = not await self._replace(old)
                except OSError as error:
                    self._reload_failed = True
                    self._log.error("can't start a worker: {why}; keeping the old workers", why=error.strerror)
                finally:
                    self._tell(old, TAKE_PART)  # for workers that were not replaced
                if not self._reload_failed:
                    now = _versions(self._workers)
                    change = "as before" if now == before else f"before {before}"
                    self._log.info("replaced all workers: version {now}, {change}", now=now, change=change)
        finally:
            self._replacing = False
            self._node.reload_failed.set(self._reload_failed)
            self._report()

    async def _replace(self, workers: list["Worker"]) -> bool:
        """Replace these workers; return False if a new one isn't ready in time, and keep the remaining old ones."""
        for old in workers:
            new = self._start(successor_of=old)
            with suppress(TimeoutError):
                await shielded(new.ready).addTimeout(READY_SECONDS, self._reactor)
            if self._stopping:
                return False
            if not new.was_ready:
                self._log.error("the new worker {pid} isn't ready in time; keeping the old workers", pid=new.pid)
                await self._retire(new)
                return False
            new.counts = True
            if old is workers[0]:  # a stream that ends must reconnect to a new worker, or it would end again
                self._tell(workers, GIVE_WAY)
            # If the old worker died during this, its successor has started already.
            await self._retire(old if old in self._workers else new)
        return True


class _Unserved(Factory):
    """The factory for the parent's port, which listens so that workers inherit its socket, but accepts nothing."""

    noisy = False

    def logPrefix(self) -> str:
        return "Site"  # as in a serving process


class Worker(Child):
    """A worker process, seen from its parent; it is `ready` when its database is open.

    `counts` is True while the worker counts towards `--workers`: not before a successor is ready, and not once the
    parent has asked the worker to stop. `checks` is True if the worker has the checkers of replays.
    """

    def __init__(self, *, counts: bool, checks: bool = False) -> None:
        super().__init__()
        self.counts = counts
        self.checks = checks
        self.was_ready = False
        self.version = ""

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Fire `ready`, because the worker has written its version to READY; 1.1.0 and older write "ready" there."""
        self.version = "1.1.0 or older" if data == b"ready" else data.decode()
        self.get_ready()

    def tell(self, word: bytes) -> None:
        """Send GIVE_WAY or TAKE_PART to the worker."""
        with suppress(KeyError):  # the worker has just died
            self.transport.writeToChild(LIFELINE, word)

    def leave(self) -> None:
        """Ask the worker to stop gracefully."""
        self.transport.closeChildFD(LIFELINE)  # a signal would be lost between fork and exec


def _close_descriptors_beyond_the_limit() -> None:
    """Close what the program that started this one has left open beyond the limit of open files, if anything.

    A new process couldn't close such a descriptor, so its start would fail ("Bad file descriptor").
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError):  # without /proc
        for name in os.listdir("/proc/self/fd"):
            if int(name) >= limit:
                os.close(int(name))


def _versions(workers: list[Worker]) -> str:
    """The versions of the workers that serve, which differ only when something has gone wrong."""
    return " and ".join(sorted({worker.version for worker in workers if worker.was_ready})) or "unknown"
