"""The database as a whole: its migrations, which solisync.postgres.migrate applies, and its newest backup."""

from dataclasses import dataclass
from datetime import datetime

from ..postgres.declared import execute, many, one
from ..postgres.statement import Query
from ..postgres.transaction import Statements

# Locking a row is a write: a standby refuses it, it goes to the log, and its commit waits for whatever commits wait
# for. It leaves nothing to vacuum, and shared locks don't wait for each other.
LOCK_LATEST = Query(
    "lock_latest_migration", "SELECT number FROM schema_migrations ORDER BY number DESC LIMIT 1 FOR KEY SHARE", row=int
)
EXISTS = Query("admin_any_migration", "SELECT to_regclass('schema_migrations') IS NOT NULL", prepared=False, row=bool)


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    """A migration that this database has."""

    number: int
    name: str
    applied_at: datetime
    checksum: str


@many(
    "SELECT number, name, applied_at, checksum FROM schema_migrations ORDER BY number DESC",
    prepared=False,
    row=AppliedMigration,
)
async def applied() -> list[AppliedMigration]:
    """All applied migrations, latest first."""


@one("SELECT coalesce(max(number), 0) FROM schema_migrations", prepared=False, row=int)
async def latest() -> int:
    """The number of the newest applied migration, in a database that has the table of migrations."""


async def lock_latest(statements: Statements) -> int:
    """Return the same as `latest`, with a commit that waits for everything that players' commits wait for."""
    return await statements.maybe(LOCK_LATEST) or 0


async def number(statements: Statements) -> int:
    """The number of the newest migration in any database; 0 without one."""
    return await latest(statements) if await statements.one(EXISTS) else 0


@execute(
    """
    INSERT INTO last_backup (finished_at) VALUES (clock_timestamp())
    ON CONFLICT (one) DO UPDATE SET finished_at = EXCLUDED.finished_at
    """,
    prepared=False,
)
async def record_backup() -> None:
    """Store that a backup has just been finished."""


@one("SELECT coalesce(extract(epoch FROM max(finished_at)), 0) FROM last_backup", prepared=False, row=float)
async def last_backup() -> float:
    """When the newest backup was finished, in seconds since 1970, or 0 if there is none."""
