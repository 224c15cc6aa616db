"""`solisync backup` and `solisync restore`: the whole database in one file, in PostgreSQL's custom format.

Refresh tokens, recovery codes and reset tokens are neither backed up nor restored, even from a file that has some.
Otherwise a session that ended after the backup, or a code that was used after it, would be valid again. --with-sessions
is for a move, in which no service runs between the backup and the restore. A backup is named by its time and its
database.
"""

import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from twisted.internet.task import LoopingCall

from ...diagnosis import introspection
from ...errors import DatabaseError, FatalError
from ...postgres.connection import Connection
from ...postgres.migrate import apply, load_migrations
from ...postgres.migration_lock import migrating
from ...postgres.opening import open_connection
from ...postgres.transaction import Statements
from ...rules.texts import bytes_shown
from ...storage import schema
from ...storage.operators import counts
from ..output import PROGRESS_SECONDS
from ..running import reached
from ..task import Task
from .programs import Programs, find_closest, find_newest

MAGIC = b"PGDMP"
LEFT_OUT = (
    "refresh_tokens",
    "recovery_codes",
    "reset_tokens",
    "rate_limits",
    "known_states",
    "recent_searches",
    "admin_codes",
    "admin_sessions",
)

# pg_restore begins with `SET x_timeout = 0` for each timeout of its version. An older server doesn't know all of them.
# This sed script turns each into a statement that does nothing if the server lacks the timeout. It changes no other
# line.
_AS_SERVER_KNOWS = (
    r"1,/^SET check_function_bodies /s/^SET \([a-z_]*_timeout\) = 0;$"
    r"/SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = '\1';/"
)

_LEFT_OUT = re.compile(rf" TABLE DATA \S+ (?:{'|'.join(LEFT_OUT)}) ")
_MIGRATIONS = re.compile(r" TABLE DATA (\S+) schema_migrations ")
_TABLE = re.compile(r"(?:contents of|data for) table \"(?:\w+\.)?(\w+)\"")

ABANDONED_SECONDS = 86_400.0  # pg_dump writes more often, so the writer of an older file is gone
_NAME = r"solisync-\d{8}T\d{6}\.\d{6}Z"  # followed by a dash, the database and ".dump"


async def backup(task: Task) -> None:
    """Write the database to a file, which appears only when it is complete; with --into, the file gets a new name."""
    settings, into, keep = task.settings, task.chosen.into, task.chosen.keep
    if into is None and keep is not None:
        raise FatalError("solisync: --keep needs --into")
    if into is not None and task.chosen.force:
        raise FatalError("solisync: --force can't be combined with --into, where each backup gets a new name")
    async with reached(settings, task.reactor, partial(open_connection, task.reactor)) as (dsn, connection):
        with closing(connection):
            if not await schema.number(Statements(connection)):
                raise FatalError("solisync: this is not a solisync database")
            if task.chosen.with_sessions:
                await _refuse_running_service(connection)
            program = await find_closest("pg_dump", settings, task.environ, connection)
            name = None if into is None else new_name(datetime.now(UTC), await introspection.identity(connection))
            file = (Path(task.chosen.file) if name is None else Path(into, name)).absolute()
            programs = Programs(reactor=task.reactor, dsn=dsn, environ=task.environ)
            with _new_file(file, force=task.chosen.force) as unfinished, _watched(task, unfinished) as heard:
                left_out = () if task.chosen.with_sessions else LEFT_OUT
                without = [f"--exclude-table-data={table}" for table in left_out]
                words = ["--format=custom", *without, "--verbose", f"--file={unfinished}", f"--dbname={programs.dsn}"]
                await programs.run(program, *words, heard=heard)
                if task.chosen.with_sessions:  # a node may have started during the backup
                    await _refuse_running_service(connection)
            with suppress(DatabaseError):  # on a standby, or on a schema from before this table
                await schema.record_backup(Statements(connection))
    facts: dict[str, object] = {"file": str(file), "bytes": file.stat().st_size}
    text = f"backed up to {file}, {bytes_shown(file.stat().st_size)}"
    if keep is not None:
        facts["deleted"] = deleted = prune(file.parent, keep, made=file.name)
        text += f"; older backups deleted: {len(deleted)}" if deleted else ""
    task.output.say(text, **facts)


async def restore(task: Task) -> None:
    """Restore a file into an empty database in one transaction, then update the schema."""
    with_sessions = task.chosen.with_sessions
    settings, file = task.settings, Path(task.chosen.file).absolute()
    with file.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise FatalError(f"solisync: {file} is not a solisync backup")
    async with reached(settings, task.reactor, partial(open_connection, task.reactor), create=True) as (dsn, first):
        first.close()
        programs = Programs(reactor=task.reactor, dsn=dsn, environ=task.environ)
        # A service that starts during the restore waits for this lock.
        async with migrating(task.reactor, dsn) as connection:
            if not await introspection.is_empty(connection):
                raise FatalError("solisync: this database is not empty: restore into a new, empty one")
            reader = find_newest("pg_restore", settings, task.environ)
            writer = find_newest("psql", settings, task.environ, encrypted=connection.encrypted)
            wanted = _wanted(file, await _contents(programs, reader, file), with_sessions=with_sessions)
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="solisync-") as chosen:
                chosen.write("\n".join(wanted))
                chosen.flush()
                # pg_restore writes COMMIT last: if it fails before, nothing is committed.
                reading = ["--single-transaction", "--no-owner", "--no-privileges", "--verbose"]
                reading += [f"--use-list={chosen.name}", "--file=-", str(file)]
                writing = ["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--file=-", f"--dbname={programs.dsn}"]
                commands = [reader, *reading], ["sed", _AS_SERVER_KNOWS], [writer, *writing]
                await programs.pipe(*commands, heard=lambda line: _report(task, line))
            if not await schema.number(Statements(connection)):
                raise FatalError(f"solisync: the restore of {file} has ended, but its data is not in this database")
            await apply(task.reactor, connection, load_migrations())
            players = await counts.players(Statements(connection))
        task.progress.clear()
        text = f"restored {players:,} player{'' if players == 1 else 's'} from {file}"
        text += "; all players stay logged in" if with_sessions else "; all players have to log in again"
        task.output.say(text, file=str(file), players=players)


async def _contents(programs: Programs, program: str, file: Path) -> str:
    try:
        return await programs.run(program, "--list", str(file))
    except FatalError as error:
        if "unsupported version" in str(error):  # the version of the file's format, which rises with PostgreSQL's
            raise FatalError(
                f"solisync: {file} comes from a newer PostgreSQL than any pg_restore here: install the client programs"
                " of that version"
            ) from None
        raise


async def _refuse_running_service(connection: Connection) -> None:
    if await introspection.service_connections(connection):
        raise FatalError(
            "solisync: --with-sessions is for a stopped service: a session that ends after the backup would live again"
        )


def _wanted(file: Path, listed: str, *, with_sessions: bool) -> list[str]:
    """Return the lines to restore, from the file's table of contents."""
    lines = [line for line in listed.splitlines() if not line.startswith(";")]
    schemas = {found[1] for line in lines if (found := _MIGRATIONS.search(line))}
    if not schemas:
        raise FatalError(f"solisync: {file} is not a solisync backup")
    if "public" not in schemas:
        raise FatalError(f"solisync: {file} has the tables in the schema {min(schemas)}, and solisync needs public")
    if not with_sessions:
        return [line for line in lines if not _LEFT_OUT.search(line)]
    if not any(" TABLE DATA " in line and " refresh_tokens " in line for line in lines):
        raise FatalError(f"solisync: {file} has no sessions: it was made without --with-sessions")
    return lines


@contextmanager
def _new_file(file: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary file beside `file`, readable by its owner alone; on success, it is renamed to `file`."""
    if not force and os.path.lexists(file):
        raise FatalError(f"solisync: {file} already exists: choose another name, or use --force")
    if force and file.exists() and not stat.S_ISREG(file.stat().st_mode):
        raise FatalError(f"solisync: can't replace {file}: it is not a regular file")
    if not file.parent.is_dir():
        raise FatalError(f"solisync: there is no directory {file.parent}")
    number, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)  # mode 0600
    os.close(number)
    unfinished = Path(name)
    try:
        yield unfinished
        unfinished.rename(file)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


@contextmanager
def _watched(task: Task, unfinished: Path) -> Iterator[Callable[[str], None]]:
    """Report the table being dumped and the size so far; yields a function that reads the lines of pg_dump."""
    place = "the schema"

    def hear(line: str) -> None:
        nonlocal place
        if found := _TABLE.search(line):
            place = found[1]

    def look() -> None:
        task.progress.report(f"backing up {place}: {bytes_shown(unfinished.stat().st_size)} so far")

    loop = LoopingCall(look)
    loop.clock = task.reactor
    loop.start(PROGRESS_SECONDS)
    try:
        yield hear
    finally:
        loop.stop()
        task.progress.clear()


def _report(task: Task, line: str) -> None:
    if found := _TABLE.search(line):
        task.progress.report(f"restoring {found[1]}", now=True)


def new_name(now: datetime, identity: str) -> str:
    """Return the name of a backup that begins at this time in UTC, of the database with this identity.

    The names of one database sort by time.
    """
    return f"solisync-{now:%Y%m%dT%H%M%S.%f}Z-{hashlib.sha256(identity.encode()).hexdigest()[:8]}.dump"


def prune(directory: Path, keep: int, *, made: str) -> list[str]:
    """Delete old backups of a database, and files that killed runs left.

    The newest `keep` backups and the one just `made` stay, and so do all files with other names. Returns the names of
    the deleted backups.
    """
    _sync(directory)  # the new backup must be safe from a crash before an old one is deleted
    backup = _NAME + re.escape(made[made.rindex("-") :])
    old = sorted(_files(directory, backup), reverse=True)[keep:]
    left = [name for name in _files(directory, rf"\.{backup}\..+\.part") if _is_abandoned(directory / name)]
    deleted = [name for name in old if name != made]
    for name in deleted + left:
        (directory / name).unlink(missing_ok=True)  # another run may delete it first
    return deleted


def _files(directory: Path, pattern: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if re.fullmatch(pattern, entry.name, re.ASCII) and entry.is_file(follow_symlinks=False):
                yield entry.name


def _is_abandoned(file: Path) -> bool:
    with suppress(FileNotFoundError):
        return time.time() - file.stat().st_mtime > ABANDONED_SECONDS
    return False


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
