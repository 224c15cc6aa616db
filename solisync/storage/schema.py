"""Which migrations the database has; solisync.postgres.migrate applies them."""

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from .rows import one

LATEST = Statement("latest_migration", "SELECT coalesce(max(number), 0) FROM schema_migrations")
EXISTS = Statement("admin_any_migration", "SELECT to_regclass('schema_migrations') IS NOT NULL", prepared=False)


async def latest(transaction: Transaction) -> int:
    """The number of the newest migration that was applied, in a database that has the table of migrations."""
    return one(int, await transaction.run(LATEST))


async def number(transaction: Transaction) -> int:
    """The number of the newest migration in any database; 0 when there is none."""
    return await latest(transaction) if one(bool, await transaction.run(EXISTS)) else 0
