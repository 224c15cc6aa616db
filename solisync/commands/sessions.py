"""`solisync sessions`: listing and ending the sessions of players."""

from ..acts import players
from ..errors import FatalError
from ..events.notices import SessionsEnded
from ..postgres.database import Database
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
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        write = task.output.table(COLUMNS)
        for session in await sessions.listed(statements, found.id) or []:
            write({column.field: getattr(session, column.field) for column in COLUMNS})


async def revoke(task: Task) -> None:
    """End the sessions of one player, or of all."""
    access = task.chosen.access
    if task.chosen.everyone and access:
        raise FatalError("solisync: --access is for one player; a new JWT_SECRET ends the access of everybody")
    async with task.acting() as acting:
        if task.chosen.everyone:
            count = await _revoke_everyone(task, acting.database)
            if count:
                acting.publish(SessionsEnded(None))
                acting.log_for_all("end_sessions of everybody")
            task.output.say(f"ended {_sessions(count)}, everybody's", revoked=count)
        else:
            found = await acting.database.run(player, task.chosen.user)
            await task.warn_of_guest(acting.database, found)
            done = await acting.perform(players.end_sessions, found.id, access=access)
            text = f"ended {_sessions(done.result)} of '{found.username}'"
            text += "; access tokens are refused within a second" if access else ""
            task.output.say(text, username=found.username, revoked=done.result)


async def _revoke_everyone(task: Task, database: Database) -> int:
    """End most sessions in small batches, then the rest under a lock, which is brief so: all players wait for it."""
    total, deleted = 0, BATCH
    while deleted == BATCH:
        deleted = await database.run(sessions.revoke_some, most=BATCH)
        total += deleted
        task.progress.report(f"{total:,} sessions ended")
    task.progress.clear()
    return total + await database.transact(sessions.revoke_everyone)


def _sessions(count: int) -> str:
    return f"{count:,} session{'' if count == 1 else 's'}"
