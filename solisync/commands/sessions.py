"""`solisync sessions`: listing and ending the sessions of players."""

from ..postgres.database import Database
from ..postgres.transaction import Statements
from ..storage import sessions
from .output import Column
from .task import Task, player

COLUMNS = (
    Column("id", 36),
    Column("begun_at", 19),
    Column("used_at", 19),
    Column("expires_at", 19),
    Column("user_agent", 40),
)
BATCH = 10_000


async def show_list(task: Task) -> None:
    """List a player's sessions: when each was begun, last used, and ends unless refreshed before."""

    async def show(transaction: Statements) -> None:
        found = await player(transaction, task.chosen.user)
        write = task.output.table(COLUMNS)
        for session in await sessions.listed(transaction, found.id) or []:
            write({column.field: getattr(session, column.field) for column in COLUMNS})

    await task.reading(show)


async def revoke(task: Task) -> None:
    """End the sessions of one player, or of all."""

    async def change(database: Database) -> None:
        if task.chosen.everyone:
            count = await _revoke_everyone(task, database)
            task.output.say(f"ended {_sessions(count)}, everybody's", revoked=count)
        else:
            found = await database.autocommit(player, task.chosen.user)
            ended = await database.autocommit(sessions.end_all, found.id)
            count = ended or 0  # None: the player has gone meanwhile
            task.output.say(f"ended {_sessions(count)} of '{found.username}'", username=found.username, revoked=count)

    await task.writing(change)


async def _revoke_everyone(task: Task, database: Database) -> int:
    """End most sessions in small batches, then the rest under a lock, which is brief so: all players wait for it."""
    total, deleted = 0, BATCH
    while deleted == BATCH:
        deleted = await database.autocommit(sessions.revoke_some, most=BATCH)
        total += deleted
        task.progress.report(f"{total:,} sessions ended")
    task.progress.clear()
    return total + await database.transact(sessions.revoke_everyone)


def _sessions(count: int) -> str:
    return f"{count:,} session{'' if count == 1 else 's'}"
