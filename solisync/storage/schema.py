"""Which migrations the database has."""

from ..postgres.database import Cursor
from ..postgres.statement import Statement
from .rows import one

LATEST = Statement("latest_migration", "SELECT coalesce(max(number), 0) FROM schema_migrations")


async def latest(cursor: Cursor) -> int:
    """The number of the newest migration that was applied."""
    return one(int, await cursor.run(LATEST))
