"""`solisync leaderboard` and `solisync avatars`: the parts of a player that other players see."""

from dataclasses import asdict

from ..acts import profiles
from ..rules.accounts import avatar_url
from ..storage.players import history
from .output import Column
from .task import Task

ENTRY_COLUMNS = (
    Column("at", 19),
    Column("username", 32),
    Column("visible", 7),
    Column("display_name", 32),
)


async def list_entries(task: Task) -> None:
    """List the names that players recently chose, newest first."""
    async with task.connection() as statements:
        write = task.output.table(ENTRY_COLUMNS)
        for each in await history.changed(statements, "opted in", most=task.chosen.limit):
            write(asdict(each))


async def hide(task: Task) -> None:
    """Hide a player's entry; its best scores are kept."""
    found, done = await task.perform(profiles.hide, lock=task.chosen.lock)
    display_name, locked = done.result
    lasting = "and the profile is locked" if locked else "until the player opts in again"
    text = f"the entry '{display_name}' of '{found.username}' is hidden, {lasting}"
    task.output.say(text, username=found.username, visible=False, changed=done.changed)


async def show(task: Task) -> None:
    """Show a player's entry again."""
    found, done = await task.perform(profiles.show)
    text = f"the entry '{done.result}' of '{found.username}' is visible"
    task.output.say(text, username=found.username, visible=True, changed=done.changed)


async def name(task: Task) -> None:
    """Give a player's entry another display name."""
    found, done = await task.perform(profiles.name, display_name=task.chosen.name)
    text = f"the entry of '{found.username}' is now called '{done.result}'"
    task.output.say(text, username=found.username, display_name=done.result, changed=done.changed)


AVATAR_COLUMNS = (
    Column("at", 19),
    Column("username", 32),
    Column("avatar", 50),
)


async def list_avatars(task: Task) -> None:
    """List the avatars that players recently uploaded, newest first."""
    async with task.connection() as statements:
        write = task.output.table(AVATAR_COLUMNS)
        for each in await history.changed(statements, "avatar changed", most=task.chosen.limit):
            write(asdict(each) | {"avatar": avatar_url(each.id, each.avatar)})


async def remove_avatar(task: Task) -> None:
    """Remove a player's avatar."""
    found, done = await task.perform(profiles.remove_avatar)
    text = f"removed the avatar of '{found.username}'" if done.changed else f"'{found.username}' has no avatar"
    task.output.say(text, id=found.id, username=found.username, changed=done.changed)
