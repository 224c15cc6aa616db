"""Brings the database's schema up to this build: numbered SQL files, applied once each, in order, under a lock.

The server frees the lock when the connection that holds it ends, also when its process was killed. Nodes that start
together poll for the lock rather than wait inside PostgreSQL, where a waiting connection would block a CREATE INDEX
CONCURRENTLY of the holder.
"""

import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from twisted.internet.base import ReactorBase
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ..errors import DatabaseError, FatalError, TransactionAborted
from .connection import Connection
from .statement import Row

LOCK_KEY = 0x736F6C6973796E63  # "solisync"
POLL_SECONDS = 0.2
LOCK_WAIT_SECONDS = 300.0

# The file of each table, which another one takes the place of when the table is rewritten.
_FILES = """
    SELECT oid, relname, relfilenode FROM pg_class
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
"""

_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_log = Logger()


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of migrations/."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the file, to detect one that was edited after it had been applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations(folder: Path | None = None) -> tuple[Migration, ...]:
    """Read the migrations of this build (or of `folder`) in order; raises FatalError for a misnamed file."""
    if folder is None:
        package = Path(__file__).parents[1]  # a wheel has them inside the package, a checkout beside it
        folder = package / "migrations" if (package / "migrations").is_dir() else package.parent / "migrations"
    migrations: list[Migration] = []
    for file in sorted(folder.glob("*.sql")):
        name = _NAME.fullmatch(file.name)
        if name is None or int(name[1]) != len(migrations) + 1:
            raise FatalError(f"solisync: {file}: migrations are numbered 0001_name.sql, 0002_name.sql, …")
        migrations.append(Migration(int(name[1]), file.name, file.read_text("utf-8")))
    if not migrations:
        raise FatalError(f"solisync: no migrations in {folder}: the installation is incomplete")
    return tuple(migrations)


async def migrate(reactor: ReactorBase, dsn: str, migrations: tuple[Migration, ...]) -> list[str]:
    """Apply the migrations that the database lacks; returns their names.

    Raises ConnectionFailed when there is no database, TransactionAborted when it went away meanwhile (in both cases
    trying again is right), FatalError when a migration fails or an applied one was edited. For a database that is newer
    than this build it only logs a warning: during a rolling upgrade the old nodes must be able to restart.
    """
    async with migrating(reactor, dsn) as connection:
        return await apply(connection, migrations)


@asynccontextmanager
async def migrating(reactor: ReactorBase, dsn: str) -> AsyncIterator[Connection]:
    """A connection that holds the lock: meanwhile no other node migrates, and no service opens the database."""
    connection = await Connection.open(reactor, dsn, bounded=False)
    try:
        # lock_timeout: a migration that can't get its table lock must not queue everybody else behind it for long;
        # client_connection_check_interval: the server notices soon when this process was killed in the middle
        await connection.execute("SET lock_timeout = '10s'; SET client_connection_check_interval = '1s'")
        await _lock(reactor, connection)
        yield connection
    finally:
        connection.close()


async def _lock(reactor: ReactorBase, connection: Connection) -> None:
    deadline = reactor.seconds() + LOCK_WAIT_SECONDS
    while True:
        ((locked,),) = await connection.execute("SELECT pg_try_advisory_lock(%s)", (LOCK_KEY,))
        if locked:
            return
        if reactor.seconds() > deadline:
            raise FatalError(f"solisync: another node has been migrating for {LOCK_WAIT_SECONDS:g} s")
        await deferLater(reactor, POLL_SECONDS)


async def apply(connection: Connection, migrations: tuple[Migration, ...]) -> list[str]:
    """Like `migrate`, on a connection that holds the lock."""
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (number int PRIMARY KEY, name text NOT NULL,"
        " checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    applied = {number: (name, checksum) for number, name, checksum in await _applied(connection)}
    applied_now = []
    for migration in migrations:
        if migration.number not in applied:
            await _apply_one(connection, migration)
            applied_now.append(migration.name)
        elif applied[migration.number][1] != migration.checksum:
            raise FatalError(f"solisync: {migration.name} was edited after this database had applied it")
    for number in sorted(set(applied) - {migration.number for migration in migrations}):
        _log.warn("the database has {name}, which this build does not know", name=applied[number][0])
    return applied_now


async def _applied(connection: Connection) -> list[tuple[int, str, str]]:
    rows = await connection.execute("SELECT number, name, checksum FROM schema_migrations")
    return [(number, name, checksum) for number, name, checksum in rows]


async def _apply_one(connection: Connection, migration: Migration) -> None:
    _log.info("applying {name}", name=migration.name)
    try:
        before = await connection.execute(f"BEGIN; {_FILES}")
        await connection.execute(migration.sql)
        await _check_no_rewrite(connection, migration, before)
        await connection.execute(
            "INSERT INTO schema_migrations (number, name, checksum) VALUES (%s, %s, %s)",
            (migration.number, migration.name, migration.checksum),
        )
        await connection.execute("COMMIT")
    except TransactionAborted:
        raise
    except DatabaseError as error:
        raise FatalError(f"solisync: {migration.name} failed: {error}") from error


async def _check_no_rewrite(connection: Connection, migration: Migration, before: list[Row]) -> None:
    """Raise FatalError when a table that was there before has been rewritten.

    That is not MVCC-safe: what runs as EXECUTE on other nodes and waits for the table finds it empty afterwards.
    """
    after = {oid: file for oid, _, file in await connection.execute(_FILES)}
    rewritten = ", ".join(name for oid, name, file in before if after.get(oid, file) != file)
    if rewritten:
        raise FatalError(
            f"solisync: {migration.name} rewrites {rewritten}, which nodes that serve meanwhile would find empty;"
            " nothing was changed"
        )
