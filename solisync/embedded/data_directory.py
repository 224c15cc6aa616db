"""The data directory of the embedded PostgreSQL: its lock, the owner of its files, and whether it is in use.

    DIR/lock               held by the process that owns the server
    DIR/postgresql/        the cluster; made as postgresql.new-… and renamed, so that a kill never leaves half a cluster
    DIR/run/               the socket; it asks for no password, so this directory has mode 0700; locked by commands
    DIR/solisync-replaced  names the server in use, if the service has been started with a DATABASE_URL
    DIR/postgresql.log     standard output and standard error of the server
    DIR/binaries-…/        the server's program files, only if the server's user can't read the installed ones

PostgreSQL refuses to run as root. So if the service runs as root, the directory and the server's files belong to
another user.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from ..errors import FatalError
from . import stale_locks
from .marks import CLUSTER, GIVE_URL, moved_to
from .programs import MAJOR, User, check_reach, find_binaries, primary_group, unprivileged_user, user_name

SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 107  # the size of sun_path in sockaddr_un, without the final NUL


class DataDirBusy(FatalError):
    """Another process owns this data directory."""


class DataDirectory:
    """The files below `path`; `user` is the server's user, or None for the user of this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cluster = path / CLUSTER
        self.log = path / "postgresql.log"
        self.user: User | None = None
        self._binaries: Path | None = None
        self._lock: IO[bytes] | None = None

    @property
    def socket_directory(self) -> Path:
        """The directory of the server's socket: below /tmp if the path of the data directory is unfit for a socket."""
        place = self.path / "run"
        # libpq reads a comma as the separator of two hosts.
        if len(os.fsencode(place / SOCKET)) <= SOCKET_PATH_BYTES and "," not in str(place):
            return place
        digest = hashlib.sha256(os.fsencode(self.path.resolve())).hexdigest()[:16]
        return Path(tempfile.gettempdir(), f"solisync-{digest}")

    def check_cluster(self) -> None:
        """Raise FatalError unless the data directory has a database, or a process that may be making one.

        This changes nothing on the disk: a lock file made by root before the first start would lock the service out.
        """
        try:
            self.cluster.stat()
        except (FileNotFoundError, NotADirectoryError):
            if self._lock is None and self.is_in_use():
                return
            text, advice = "", "name the directory that the service uses with --data-dir or SOLISYNC_DATA_DIR"
            if server := moved_to(self.path):
                text, advice = f", and the service was started with {server}", GIVE_URL
            raise FatalError(f"solisync: there is no database in {self.path}{text}: {advice}") from None
        except OSError as error:
            raise self._unusable(error) from None

    def is_in_use(self) -> bool:
        """Whether a process has the lock; as far as this user may see it."""
        try:
            lock = os.open(self.path / "lock", os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def claim(self, uid: int | None) -> None:
        """Make the directory and take its lock; as root, prepare it for `uid`, which the process becomes later.

        Raises DataDirBusy if another process has the lock, FatalError for any other failure and for a cluster of
        another version of PostgreSQL.
        """
        try:
            if os.geteuid() == 0:
                self.user = self._unprivileged(uid)
                check_reach(self.path, self.user)
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = lock = self.open_for_writing("lock")
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            self._lock = None
            raise DataDirBusy(
                f"solisync: the data directory {self.path} is in use by another solisync;"
                " stop that one, or give this one another directory with --data-dir"
            ) from None
        self._check_version()
        if os.geteuid() == 0 and uid:
            try:
                self._give_away()
                self.find_binaries()  # while this process may still copy them
            except OSError as error:
                raise FatalError(f"solisync: can't prepare {self.path} for uid {uid}: {error}") from None

    def _unusable(self, error: OSError) -> FatalError:
        text = f"solisync: can't use the data directory {self.path}: {error.strerror}"
        with suppress(OSError, TypeError):
            if error.errno == errno.EACCES:
                text += f": {error.filename} belongs to {user_name(os.lstat(error.filename).st_uid)}"
        return FatalError(text)

    def _check_version(self) -> None:
        try:
            found = (self.cluster / "PG_VERSION").read_text("ascii").strip()
        except OSError:
            return
        if found != MAJOR:
            raise FatalError(
                f"solisync: {self.cluster} is of PostgreSQL {found}, this version has {MAJOR}:"
                " dump it with the old version, move it away, and restore the dump into the new one"
            )

    def prepare(self) -> None:
        """Determine the server's user, and make the directory of the socket. Raises FatalError or OSError."""
        if os.geteuid() == 0:
            if self.cluster.exists() and self.cluster.stat().st_uid == 0:  # a copy made by root
                raise FatalError(
                    f"solisync: {self.cluster} belongs to root, and PostgreSQL refuses to run as root: chown -R it"
                )
            self._give_away()
        elif os.getuid() != os.geteuid():
            self.user = os.geteuid(), os.getegid()  # the server insists that the two are the same
        else:
            self.user = None
        self._make_private(self.socket_directory)

    def take_over_stale_locks(self) -> None:
        """Let the server start where a killed one has left lock files with the process id of another program."""
        locks = (self.cluster / "postmaster.pid", self.socket_directory / f"{SOCKET}.lock")
        stale_locks.take_over(self.cluster, locks)

    def find_binaries(self) -> Path:
        """Return the directory with initdb and postgres. Blocks; raises FatalError or OSError."""
        if self._binaries is None:
            self._binaries = find_binaries(self.path, self.user)
        return self._binaries

    def make_unfinished_cluster(self) -> Path:
        """Make an empty directory for initdb, owned by the server's user.

        Its name is always new, because an initdb whose parent was killed may still be writing to an older one.
        """
        unfinished = Path(tempfile.mkdtemp(prefix="postgresql.new-", dir=self.path))
        if self.user is not None:
            os.chown(unfinished, *self.user)
        return unfinished

    def finish_cluster(self, unfinished: Path) -> None:
        """Rename a complete cluster, durably: a power cut could restore the old name, which the next start removes."""
        unfinished.rename(self.cluster)
        directory = os.open(self.path, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    def remove_unfinished_clusters(self) -> None:
        """Remove the leftovers of interrupted runs of initdb; a run that still writes may leave a part behind."""
        for leftover in self.path.glob("postgresql.new*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def open_for_writing(self, name: str) -> IO[bytes]:
        """Open a file below the directory for appending; a new file belongs to the server's user."""
        # O_NOFOLLOW: another user may write here, and root would follow a link to any file.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        file = os.fdopen(os.open(self.path / name, flags, 0o600), "ab")
        if self.user is not None and os.geteuid() == 0 and os.fstat(file.fileno()).st_uid != self.user[0]:
            os.fchown(file.fileno(), *self.user)
        return file

    def hold_server(self, *, alone: bool) -> int | None:
        """Lock the server, `alone` or with others; return the lock's descriptor, or None while it can't be had.

        Raises OSError if there is no server. This is another lock than that of `claim`, on the socket's directory.
        """
        held = os.open(self.socket_directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(held, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return None
        return held

    def release(self) -> None:
        """If this process has the lock, remove unfinished clusters and the socket's directory, and release the lock."""
        if self._lock is not None:
            self.remove_unfinished_clusters()  # an initdb may still have been writing during the removal at the start
            self._lock.close()
            if self.socket_directory.parent != self.path:
                with suppress(OSError):
                    self.socket_directory.rmdir()

    def _unprivileged(self, uid: int | None) -> User:
        """The server's user if this process is root: the given one, the owner of the files, or `unprivileged_user`."""
        if uid:
            return uid, primary_group(uid)
        if self.cluster.exists() and (found := self.cluster.stat()).st_uid != 0:
            return found.st_uid, found.st_gid
        # The directory may be empty, made for a service of another user, for example by `install -d -o solisync`.
        if self.path.exists() and (owner := self.path.stat().st_uid) != 0:
            return owner, primary_group(owner)
        return unprivileged_user()

    def _give_away(self) -> None:
        """As root, make the server's user the owner of the directory."""
        assert self.user is not None
        if self.path.stat().st_uid != self.user[0]:
            os.chown(self.path, *self.user)

    def _make_private(self, directory: Path) -> None:
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        found = directory.lstat()
        owner = self.user[0] if self.user is not None else os.geteuid()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (owner, os.geteuid()) or found.st_mode & 0o077:
            raise FatalError(f"solisync: {directory} must be a directory of mode 0700 that belongs to uid {owner}")
        if self.user is not None and found.st_uid != owner:
            os.chown(directory, *self.user)
