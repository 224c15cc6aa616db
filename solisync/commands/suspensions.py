"""`solisync users suspend`, `unsuspend`, `lock` and `unlock`."""

from datetime import UTC

from ..acts import players
from ..acts.act import Act
from ..errors import NotFound
from ..rules.administration import MESSAGE_MAX, check_text
from .task import Task, player


async def suspend(task: Task) -> None:
    """Suspend those players who exist, each in a transaction; raises NotFound for the others."""
    until, message = task.chosen.until, task.chosen.message
    if message is not None:
        message = check_text(message, "message", MESSAGE_MAX)
    ends = "until somebody ends it" if until is None else f"until {until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    missing = []
    async with task.acting() as acting:
        for text in dict.fromkeys(task.chosen.users):
            try:
                found = await acting.database.run(player, text)
                done = await acting.perform(players.SUSPEND, found.id, until=until, message=message)
            except NotFound:
                missing.append(text)
            else:
                state = f"'{found.username}' is suspended {ends}"
                task.output.say(state, id=found.id, username=found.username, until=until, changed=done.changed)
    if missing:
        raise NotFound("user_not_found", f"no such user: {', '.join(missing)}")


async def unsuspend(task: Task) -> None:
    """End a suspension."""
    await _perform(task, players.UNSUSPEND, "can log in again", "is not suspended")


async def lock(task: Task) -> None:
    """Lock a profile."""
    await _perform(task, players.LOCK, "can't change what others see any more", "is locked already")


async def unlock(task: Task) -> None:
    """Unlock a profile."""
    await _perform(task, players.UNLOCK, "can change again what others see", "is not locked")


async def _perform(task: Task, act: Act, changed: str, unchanged: str) -> None:
    async with task.acting() as acting:
        found = await acting.database.run(player, task.chosen.user)
        done = await acting.perform(act, found.id)
        text = f"'{found.username}' {changed if done.changed else unchanged}"
        task.output.say(text, id=found.id, username=found.username, changed=done.changed)
