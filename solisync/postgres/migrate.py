"""Migrations: upgrade the schema of the database to this version by SQL files, each once, in order, under a lock.

A new database begins with baseline.sql, the schema of version 1.0.0; the numbered files follow. A numbered file is one
transaction, unless its first line is "-- concurrently", for a single CREATE INDEX CONCURRENTLY, which PostgreSQL
refuses in a transaction; or "-- in batches", for a single DO that commits each batch, and may be repeated. Settings are
local to a transaction, so that a pooler passes none of them on to other connections.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from twisted.internet.base import ReactorBase
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ..errors import ConnectionLost, DatabaseError, Declined, FatalError, Outdated, TimedOut, TransactionAborted
from .connection import Connection
from .migration_lock import BEGIN, MIGRATION_TIMES, MigrationTimes, migrating
from .statement import Row

# Statements queue behind a migration that waits for the same table. So the migration gives up after a second, long
# before the statements of the service time out, and retries later.
LOCK_TIMEOUT = "1s"

# client_connection_check_interval: the server soon notices if this process is killed during a migration.
_BEGIN = f"{BEGIN}; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; SET LOCAL client_connection_check_interval = '1s'"

_LIST = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""

# The file of each table. A rewrite of the table replaces it by another file.
_FILES = """
    SELECT oid, relname, relfilenode FROM pg_class
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
"""

BASELINE = "baseline.sql"
_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_REPLACED = re.compile(rf"^-- ({_NAME.pattern}) ([0-9a-f]{{64}})$", re.MULTILINE)
_MARK = "-- concurrently\n"
_IN_BATCHES = "-- in batches\n"
_INDEX = re.compile(
    _MARK + r"(?:\s*--[^\n]*\n)*\s*CREATE (?:UNIQUE )?INDEX CONCURRENTLY ([a-z0-9_]+)\s+ON\s[^;]*;?\s*", re.IGNORECASE
)

# Behind a pooler only a transaction can lift the role's statement_timeout, and a concurrent index can't be in one.
_ADVICE = "; if that is a time limit, run solisync --migrate with a DATABASE_URL of the server, not of its pooler"

_log = Logger()


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of migrations/. The baseline has the number of the last file that it replaces."""

    number: int
    name: str
    sql: str

    @property
    def records(self) -> list[tuple[int, str, str]]:
        """The rows of the file in schema_migrations: number, name, and SHA-256, which detects a later edit.

        The baseline has a row for each file that it replaces, so that version 1.0.0 accepts the database.
        """
        if self.name == BASELINE:
            return [(int(number), name, checksum) for name, number, checksum in _REPLACED.findall(self.sql)]
        return [(self.number, self.name, hashlib.sha256(self.sql.encode()).hexdigest())]

    @property
    def in_batches(self) -> bool:
        """Whether the file commits its batches itself."""
        return self.sql.startswith(_IN_BATCHES)

    @property
    def index(self) -> str | None:
        """The name of the index that the file creates concurrently, or None if the file is a transaction.

        Raises FatalError if a file marked "-- concurrently" has any other statement.
        """
        if not self.sql.startswith(_MARK):
            return None
        found = _INDEX.fullmatch(self.sql)
        if found is None:
            raise FatalError(f"solisync: {self.name}: after {_MARK.strip()!r} comes one CREATE INDEX CONCURRENTLY")
        return found[1]


def load_migrations(folder: Path | None = None) -> tuple[Migration, ...]:
    """Read the migrations of this build (or of `folder`) in order; raises FatalError for a misnamed file."""
    if folder is None:
        package = Path(__file__).parents[1]  # migrations/ is inside the package in a wheel, beside it in a checkout
        folder = package / "migrations" if (package / "migrations").is_dir() else package.parent / "migrations"
    migrations: list[Migration] = []
    number = 0
    if (baseline := folder / BASELINE).exists():
        sql = baseline.read_text("utf-8")
        number = len(_REPLACED.findall(sql))
        migrations.append(Migration(number, BASELINE, sql))
    for file in sorted(set(folder.glob("*.sql")) - {baseline}):
        number += 1
        name = _NAME.fullmatch(file.name)
        if name is None or int(name[1]) != number:
            raise FatalError(f"solisync: {file}: the next migration is {number:04}_name.sql")
        migrations.append(Migration(number, file.name, file.read_text("utf-8")))
    if not migrations:
        raise FatalError(f"solisync: no migrations in {folder}: the installation is incomplete")
    return tuple(migrations)


async def migrate(
    reactor: ReactorBase, dsn: str, migrations: tuple[Migration, ...], times: MigrationTimes = MIGRATION_TIMES
) -> list[str]:
    """Apply the migrations that the database lacks, and return their names.

    Raises errors that a later attempt may not meet: ConnectionFailed if no server accepts writes, TransactionAborted
    if the database was lost, Declined if it is full or another node migrates for long. Raises FatalError if the
    encoding is wrong, a migration fails, or an applied one was edited. A newer database causes only a warning in the
    log, because old nodes must be able to restart during a rolling upgrade.
    """
    async with migrating(reactor, dsn, times) as connection:
        return await apply(reactor, connection, migrations, times)


async def apply(
    reactor: ReactorBase,
    connection: Connection,
    migrations: tuple[Migration, ...],
    times: MigrationTimes = MIGRATION_TIMES,
) -> list[str]:
    """Like `migrate`, on a connection that `migrating` has returned."""
    try:
        if await connection.execute("SELECT to_regclass('schema_migrations') IS NULL") == [(True,)]:
            await connection.execute(_LIST)
        applied = {number: (name, checksum) for number, name, checksum in await _applied(connection)}
    except (TransactionAborted, Declined):
        raise
    except DatabaseError as error:
        own = connection.libpq.info
        raise FatalError(
            f"solisync: role {own.user} can't use the database {own.dbname}: {error}: make it the owner, or let the"
            " owner run solisync --migrate and repeat the GRANTs of docs/deployment.md#least-privileges there"
        ) from error
    applied_now = []
    for migration in migrations:
        if migration.name == BASELINE and applied:
            _check_release(migration, applied)
        elif migration.number not in applied:
            await _apply_when_free(reactor, connection, migration, times)
            applied_now.append(migration.name)
        else:
            _check_unedited(migration, applied)
    known = {number for migration in migrations for number, _, _ in migration.records}
    for number in sorted(set(applied) - known):
        _log.warn("the database has {name}, which this version does not know", name=applied[number][0])
    return applied_now


def _check_release(baseline: Migration, applied: dict[int, tuple[str, str]]) -> None:
    """Raise FatalError if the database lacks a file that the baseline replaces: it predates version 1.0.0."""
    if any(number not in applied for number, _, _ in baseline.records):
        raise FatalError("solisync: this database is from a version before 1.0.0: start solisync 1.0.0 on it once")
    _check_unedited(baseline, applied)


def _check_unedited(migration: Migration, applied: dict[int, tuple[str, str]]) -> None:
    for number, name, checksum in migration.records:
        if applied[number][1] != checksum:
            raise FatalError(f"solisync: {name} was edited after this database had applied it")


async def _applied(connection: Connection) -> list[tuple[int, str, str]]:
    rows = await connection.execute("SELECT number, name, checksum FROM schema_migrations")
    return [(number, name, checksum) for number, name, checksum in rows]


async def _apply_when_free(
    reactor: ReactorBase, connection: Connection, migration: Migration, times: MigrationTimes
) -> None:
    """Apply a migration; while its tables are in use, retry after `times.pause`, for up to `times.patience`."""
    _log.info("applying {name}", name=migration.name)
    whole = migration.index is None and not migration.in_batches
    apply_one = _apply_in_transaction if whole else _apply_in_batches if migration.in_batches else _create_index
    advice = "" if whole or not connection.server.pooled else _ADVICE
    deadline = reactor.seconds() + times.patience
    noticed = False
    while True:
        try:
            await apply_one(connection, migration)
        except (ConnectionLost, Outdated, Declined):
            raise
        except (TimedOut, TransactionAborted) as error:  # no lock in time, or a deadlock
            if reactor.seconds() > deadline:
                reason = f"its tables have been in use for {times.patience:g} s ({error})"
                raise FatalError(f"solisync: {migration.name} failed: {reason}{advice}") from error
            if not noticed:
                text = "{name} waits for tables that are in use: {error}{advice}"
                _log.warn(text, name=migration.name, error=error, advice=advice, waiting=True)
                noticed = True
        except DatabaseError as error:
            raise FatalError(f"solisync: {migration.name} failed: {error}") from error
        else:
            return
        if connection.can_roll_back:
            await connection.execute("ROLLBACK")
        await deferLater(reactor, times.pause)


async def _apply_in_transaction(connection: Connection, migration: Migration) -> None:
    before = await connection.execute(f"{_BEGIN}; {_FILES}")
    await connection.execute(migration.sql)
    await _check_no_rewrite(connection, migration, before)
    await _record(connection, migration)
    await connection.execute("COMMIT")


async def _check_no_rewrite(connection: Connection, migration: Migration, before: list[Row]) -> None:
    """Raise FatalError if the migration has rewritten an older table.

    A rewrite isn't MVCC-safe: prepared statements of other nodes that wait for the table then find it empty.
    """
    after = {oid: file for oid, _, file in await connection.execute(_FILES)}
    rewritten = ", ".join(name for oid, name, file in before if after.get(oid, file) != file)
    if rewritten:
        raise FatalError(
            f"solisync: {migration.name} rewrites {rewritten}, which other nodes would find empty during the migration;"
            " nothing was changed"
        )


async def _create_index(connection: Connection, migration: Migration) -> None:
    """Create an index concurrently; a killed attempt may have left nothing of it, a part, or all."""
    valid = await connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (migration.index,)
    )
    if valid == [(False,)]:
        await connection.execute(f"DROP INDEX CONCURRENTLY {migration.index}")
    if valid != [(True,)]:
        await connection.execute(migration.sql)
    await _record(connection, migration)


async def _apply_in_batches(connection: Connection, migration: Migration) -> None:
    """Run a migration that commits its batches; a killed attempt may have left some of them."""
    await connection.execute(migration.sql)
    await _record(connection, migration)


async def _record(connection: Connection, migration: Migration) -> None:
    for record in migration.records:
        await connection.execute("INSERT INTO schema_migrations (number, name, checksum) VALUES (%s, %s, %s)", record)
