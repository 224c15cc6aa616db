"""Work without the transaction that it needs. `make lint` fails if mypy accepts it: an unused ignore is an error."""

from solisync.postgres.database import Database
from solisync.postgres.transaction import Statements
from solisync.storage.players import sync
from solisync.storage.replays import replays


async def commit(statements: Statements) -> None:
    await statements.commit()  # type: ignore[attr-defined]


async def begin(database: Database, statements: Statements) -> None:
    await database.run(sync.load, "player", None)  # type: ignore[arg-type]
    await replays.room(statements, "player", None)  # type: ignore[arg-type]
    await database.transact(sync.load, "player", None)
    await database.transact(sync.read, "player")
