"""Which migrations the database has."""

from ..postgres.statement import Statement
from ..postgres.transaction import Transaction
from .rows import one

LATEST = Statement("latest_migration", "SELECT coalesce(max(number), 0) FROM schema_migrations")


async def latest(transaction: Transaction) -> int:
    """The number of the newest migration that was applied."""
    return one(int, await transaction.run(LATEST))
