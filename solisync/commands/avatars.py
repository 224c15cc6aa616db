"""`solisync avatars`: new avatars, and taking one away."""

from dataclasses import asdict

from ..acts import shown
from ..rules.accounts import avatar_url
from ..storage import history
from .output import Column
from .task import Task, player

COLUMNS = (
    Column("at", 19),
    Column("username", 32),
    Column("avatar", 50),
)


async def show_list(task: Task) -> None:
    """List the avatars that players have lately uploaded, the newest first."""
    async with task.connection() as statements:
        write = task.output.table(COLUMNS)
        for each in await history.changed(statements, "avatar changed", most=task.chosen.limit):
            write(asdict(each) | {"avatar": avatar_url(each.id, each.avatar)})


async def remove(task: Task) -> None:
    """Take a player's avatar away."""
    async with task.acting() as acting:
        found = await acting.database.run(player, task.chosen.user)
        done = await acting.perform(shown.REMOVE_AVATAR, found.id)
        text = f"the avatar of '{found.username}' is gone" if done.changed else f"'{found.username}' has no avatar"
        task.output.say(text, id=found.id, username=found.username, changed=done.changed)
