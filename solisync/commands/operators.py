"""`solisync admins` and `solisync acts`: the admins of the console, and the record of acts."""

from dataclasses import asdict as fields_of
from datetime import UTC, datetime

from msgspec.structs import asdict

from ..acts.record import listed
from ..errors import FatalError, NotFound
from ..rules.administration import CODE_DIGITS, check_admin_name
from ..rules.recovery import digest, new_code, read_code
from ..rules.shapes import canonical_uuid
from ..storage.operators import acts, admins
from ..storage.operators.acts import ActFilter
from ..storage.paging import END, FIRST_TIME
from .output import Column, shown
from .task import Task, player

ADMIN_COLUMNS = (Column("name", 32), Column("added_at", 19), Column("sessions", 8, right=True), Column("used_at", 19))
SESSION_COLUMNS = (
    Column("id", 36),
    Column("admin", 20),
    Column("begun_at", 19),
    Column("used_at", 19),
    Column("expires_at", 19),
    Column("client", 20),
    Column("user_agent", 40),
)


async def add(task: Task) -> None:
    """Add an admin."""
    name = check_admin_name(task.chosen.name)
    async with task.database() as database:
        added = await database.run(admins.add, name)
    text = f"added admin '{name}'" if added else f"'{name}' is already an admin"
    task.output.say(f"{text}; to make a sign-in code, run: solisync admins code {name}", name=name, added=added)


async def remove(task: Task) -> None:
    """Remove an admin, and end their sessions."""
    async with task.database() as database:
        if not await database.run(admins.remove, task.chosen.name):
            raise _no_such_admin(task.chosen.name)
    task.output.say(f"removed admin '{task.chosen.name}' and ended their sessions", name=task.chosen.name)


async def list_admins(task: Task) -> None:
    """List admins."""
    async with task.connection() as statements:
        write = task.output.table(ADMIN_COLUMNS)
        for admin in await admins.listed(statements):
            write(asdict(admin))


async def code(task: Task) -> None:
    """Make a code with which an admin signs in once; it replaces an earlier code."""
    made = new_code(CODE_DIGITS)
    digits = read_code(made, CODE_DIGITS)
    assert digits is not None
    async with task.database() as database:
        expires_at = await database.run(admins.put_code, task.chosen.name, digest(digits))
    if expires_at is None:
        raise _no_such_admin(task.chosen.name)
    task.output.say(made, name=task.chosen.name, code=made, expires_at=expires_at)
    if not task.output.json:
        task.output.say(f"for '{task.chosen.name}', works once, until {shown(expires_at)} UTC")


async def sessions(task: Task) -> None:
    """List the live sessions of admins, or end sessions of one admin."""
    name, ended_id = task.chosen.name, task.chosen.end_session
    if not task.chosen.end and ended_id is None:
        async with task.connection() as statements:
            write = task.output.table(SESSION_COLUMNS)
            for session in await admins.sessions(statements, name):
                write(asdict(session))
        return
    if name is None:
        raise FatalError("solisync: name the admin whose sessions to end")
    session_id = None if ended_id is None else canonical_uuid(ended_id)
    if ended_id is not None and session_id is None:
        raise NotFound("session_not_found")
    async with task.database() as database:
        ended = await database.run(admins.end, name, session_id)
    if ended_id is not None and not ended:
        raise NotFound("session_not_found")
    task.output.say(f"ended {ended} session{'' if ended == 1 else 's'} of '{name}'", name=name, ended=ended)


def _no_such_admin(name: str) -> NotFound:
    return NotFound("not_found", f"there is no admin '{name}'")


ACT_COLUMNS = (
    Column("at", 19),
    Column("actor", 20),
    Column("act", 13),
    Column("username", 20),
    Column("reason", 8),
    Column("replay_id", 36),
    Column("before", 20),
    Column("after", 20),
    Column("note", 40),
)


async def list_acts(task: Task) -> None:
    """List acts, newest first."""
    given = task.chosen
    left, now = given.limit, datetime.now(UTC)
    async with task.connection() as statements:
        wanted = ActFilter(
            act=given.act,
            actor=given.actor,
            reason=given.reason,
            since=given.since or FIRST_TIME,
            until=given.until or END.time,
            user_id=None if given.user is None else (await player(statements, given.user)).id,
        )
        write = task.output.table(ACT_COLUMNS)
        async for page in acts.listed(statements, wanted):
            for each in page[:left]:
                write(fields_of(listed(each, now)))
            if left is not None:
                left -= len(page)
                if left <= 0:
                    return
