"""`solisync sessions`: list and end the sessions of players."""

from ..acts import players
from ..errors import FatalError
from ..events.notices import SessionsEnded
from ..postgres.database import Database
from ..storage.players import sessions
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
    """List a player's sessions with the times of their beginning, last use and expiry."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        write = task.output.table(COLUMNS)
        for session in await sessions.listed(statements, found.id) or []:
            write({column.field: getattr(session, column.field) for column in COLUMNS})


async def revoke(task: Task) -> None:
    """End the sessions of one player, or of all players."""
    access = task.chosen.access
    if task.chosen.everyone and access:
        raise FatalError("solisync: --access works for one player; to end all players' access, change JWT_SECRET")
    async with task.acting() as acting:
        if task.chosen.everyone:
            count = await _revoke_everyone(task, acting.database)
            if count:
                acting.publish(SessionsEnded(None))
                acting.log_for_all("end_sessions of all players")
            task.output.say(f"ended {_sessions(count)} of all players", revoked=count)
        else:
            found = await acting.database.run(player, task.chosen.user)
            await task.warn_of_guest(acting.database, found)
            done = await acting.perform(players.end_sessions, found.id, access=access)
            text = f"ended {_sessions(done.result)} of '{found.username}'"
            text += "; their access tokens are refused within a second" if access else ""
            task.output.say(text, username=found.username, revoked=done.result)


async def _revoke_everyone(task: Task, database: Database) -> int:
    """End most sessions in small batches, then the rest under a lock.

    The lock delays logins and writes of all players, so it must be brief.
    """
    total, deleted = 0, BATCH
    while deleted == BATCH:
        deleted = await database.run(sessions.revoke_some, most=BATCH)
        total += deleted
        task.progress.report(f"ended {total:,} sessions")
    task.progress.clear()
    return total + await database.transact(sessions.revoke_everyone)


def _sessions(count: int) -> str:
    return f"{count:,} session{'' if count == 1 else 's'}"
