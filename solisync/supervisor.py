"""The parent of several worker processes at one port: it starts and replaces them, and serves no request itself.

The parent binds the port and passes the socket to each worker, which is `python -m solisync.worker`: a new process that
reads its code and its settings anew. So SIGHUP, which replaces the workers one by one, also takes up a new version of
solisync, and secrets that have changed in their files (docs/operations.md "Several processes").
"""

import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError, gatherResults, maybeDeferred
from twisted.internet.protocol import Factory
from twisted.logger import Logger
from twisted.python.failure import Failure

from .embedded.data_directory import record_use
from .embedded.server import EmbeddedPostgres
from .errors import FatalError
from .process import listening
from .process.child import Child, ending
from .process.daemon import Daemon
from .process.shared_metrics import VARIABLE, SharedMetrics
from .process.shielded import shielded
from .settings.settings import ServingSettings
from .settings.table import TABLE

# The descriptors of a worker: a standard input that stays open for as long as the worker is to serve, and on which the
# parent says whether it is to give way to other workers at the port; the listening socket; a pipe on which the worker
# reports that it is ready; and the listening socket of the console, if there is one.
LIFELINE, SOCKET, READY, ADMIN_SOCKET = 0, 3, 4, 5
GIVE_WAY, TAKE_PART = b"-", b"+"
COMMAND = (sys.executable, "-P", "-m", "solisync.worker")

REPLACE_SECONDS = 0.2  # before a worker that died is replaced
REPLACE_AGAIN_SECONDS = 2.0  # the same for one that died before it was ready
READY_SECONDS = 30.0  # how long a new worker may take before the old one is kept
STOP_MARGIN_SECONDS = 5.0  # how much longer than `stop_seconds` a worker may take to end before it is killed


def worker_environ(environ: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker: the parent's, with command line options as the variables that they override."""
    given = dict(environ)
    given.pop(VARIABLE, None)  # meant for another program
    for setting in TABLE:
        if (value := options.get(setting.option)) is not None:
            given[setting.variable] = value
            if setting.variable.endswith("_FILE"):  # a secret and a file with it would be one too many
                given.pop(setting.variable.removesuffix("_FILE"), None)
    return given


class Supervisor(Daemon):
    """The parent: keeps as many workers running as the settings say."""

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
        self._replacing = False
        self._replace_again = False
        if embedded is not None:
            environ["DATABASE_URL"] = embedded.dsn
        if settings.listen.startswith("systemd:"):
            environ["SOLISYNC_LISTEN"] = "tcp:0"  # systemd's socket is the parent's; a worker gets it by descriptor
        if (settings.admin_listen or "").startswith("systemd:"):
            environ["SOLISYNC_ADMIN_LISTEN"] = "tcp:0:interface=127.0.0.1"  # likewise

    def privilegedStartService(self) -> None:
        """Take what may need root: the data directory and the port. Raises FatalError."""
        super().privilegedStartService()
        if self._embedded is not None:
            self._embedded.claim(self._uid)
        self._port = listening.listen(self._reactor, self._settings.listen, _Unserved())
        self._sockets = {SOCKET: listening.share(self._port)}
        self._listen_for_admins(self._settings.admin_listen, _Unserved(), public=bool(self._settings.admin_hosts))
        if self._admin_port is not None:
            self._sockets[ADMIN_SOCKET] = listening.share(self._admin_port)
        self._listen_for_scrapes(self._settings.metrics_listen, self._metrics.exposition)
        record_use(self._settings.data_dir, self._settings.database_url)

    def startService(self) -> None:
        """Start the workers and the embedded database; the workers wait for it."""
        super().startService()
        text = f" with {self._settings.workers} workers"
        self._log_start(text, self._settings.listen, None if self._embedded is None else self._embedded.data_dir)
        if self._settings.metrics_listen is not None:
            self._environ |= {"SOLISYNC_METRICS_LISTEN": "", **self._metrics.open()}  # the parent listens for all
        self._on_hangup(self.replace_all)
        self._reactor.callWhenRunning(self._fill)  # a worker may be ready before this process handles signals
        if self._embedded is not None:
            Deferred.fromCoroutine(self._embedded.start()).addErrback(self._give_up)

    async def _stop(self) -> None:
        """Close the port, let every worker drain, then stop the embedded database."""
        for port in (self._port, self._admin_port):
            if port is not None:
                await maybeDeferred(port.stopListening)  # connections that wait there are accepted by a worker
        await gatherResults([Deferred.fromCoroutine(self._retire(worker)) for worker in self._workers])
        if self._embedded is not None:
            await self._embedded.stop()
        await self._stop_listening_for_scrapes()
        self._metrics.close()
        self._log.info("stopped")

    def _fill(self) -> None:
        """Start workers until there are as many as there should be."""
        try:
            while not self._stopping and sum(worker.counts for worker in self._workers) < self._settings.workers:
                self._start()
        except OSError as error:
            self._log.error("can't start a worker: {why}", why=error.strerror)
            self._reactor.callLater(REPLACE_AGAIN_SECONDS, self._fill)

    def _start(self, *, successor_of: "Worker | None" = None) -> "Worker":
        """Start a worker; a successor is on trial. One worker has the checkers of this node."""
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
        return ready

    def _on_end(self, status: int, worker: "Worker") -> int:
        self._workers.remove(worker)
        self._metrics.forget(worker.pid)
        if not worker.counts or self._stopping:
            return status
        if status == 1 and not self._ever_ready:  # the worker has logged the reason, which holds for the next one too
            self._give_up(Failure(FatalError("solisync: the workers can't start, the reason is above")))
            return status
        self._log.error("worker {pid} ended {how}, starting another", pid=worker.pid, how=ending(status))
        self._reactor.callLater(REPLACE_SECONDS if worker.was_ready else REPLACE_AGAIN_SECONDS, self._fill)
        return status

    def _tell(self, workers: list["Worker"], word: bytes) -> None:
        for worker in workers:
            if worker in self._workers and worker.counts:
                worker.tell(word)

    async def _retire(self, worker: "Worker") -> None:
        """Stop a worker gracefully, or kill it when that takes too long; it is not replaced."""
        worker.counts = False
        worker.leave()
        try:
            await shielded(worker.ended).addTimeout(self._settings.stop_seconds + STOP_MARGIN_SECONDS, self._reactor)
        except TimeoutError:
            self._log.error("worker {pid} does not end, killing it", pid=worker.pid)
            worker.signal(signal.SIGKILL)

    def replace_all(self) -> None:
        """Replace each worker by a new one, one by one, so that no request is refused or dropped."""
        self._replace_again = True
        if not self._replacing:
            self._replacing = True
            Deferred.fromCoroutine(self._replace_all()).addErrback(
                lambda failure: self._log.failure("could not replace the workers", failure)
            )

    async def _replace_all(self) -> None:
        try:
            while self._replace_again and not self._stopping:
                self._replace_again = False
                self._log.info("replacing the workers")
                old = [worker for worker in self._workers if worker.counts]
                try:
                    if await self._replace(old):
                        self._log.info("all workers are new")
                except OSError as error:
                    self._log.error("can't start a worker: {why}: the old ones stay", why=error.strerror)
                finally:
                    self._tell(old, TAKE_PART)  # those that stay
        finally:
            self._replacing = False

    async def _replace(self, workers: list["Worker"]) -> bool:
        """Replace these workers; False when a new one doesn't get ready, and the old ones that are left stay."""
        for old in workers:
            new = self._start(successor_of=old)
            with suppress(TimeoutError):
                await shielded(new.ready).addTimeout(READY_SECONDS, self._reactor)
            if self._stopping:
                return False
            if not new.was_ready:
                self._log.error("the new worker {pid} does not get ready: the old ones stay", pid=new.pid)
                await self._retire(new)
                return False
            new.counts = True
            if old is workers[0]:  # streams that end with an old worker come back to a new one, and end but once
                self._tell(workers, GIVE_WAY)
            # an old worker that died meanwhile has a successor already
            await self._retire(old if old in self._workers else new)
        return True


class _Unserved(Factory):
    """The parent's side of the port: it listens, so that workers can inherit the socket, and accepts nothing."""

    noisy = False

    def logPrefix(self) -> str:
        return "Site"  # as in a process that serves


class Worker(Child):
    """A worker process, seen from its parent; `ready` when its database is open.

    `counts` says whether it is one of the workers that there should be: not while it is on trial, nor once it is
    to end; `checks` whether it has the checkers of replays.
    """

    def __init__(self, *, counts: bool, checks: bool = False) -> None:
        super().__init__()
        self.counts = counts
        self.checks = checks
        self.was_ready = False

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Fire `ready`: the worker has written to READY."""
        self.get_ready()

    def tell(self, word: bytes) -> None:
        """Say whether to give way to other workers at the port."""
        with suppress(KeyError):  # it has just died
            self.transport.writeToChild(LIFELINE, word)

    def leave(self) -> None:
        """Ask for a graceful stop."""
        self.transport.closeChildFD(LIFELINE)  # a signal would be lost between fork and exec
