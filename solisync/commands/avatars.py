"""`solisync avatars`: taking an avatar away."""

from ..acts import shown
from .task import Task, player


async def remove(task: Task) -> None:
    """Take a player's avatar away."""
    async with task.acting() as acting:
        found = await acting.database.autocommit(player, task.chosen.user)
        done = await acting.perform(shown.REMOVE_AVATAR, found.id)
        text = f"the avatar of '{found.username}' is gone" if done.changed else f"'{found.username}' has no avatar"
        task.output.say(text, id=found.id, username=found.username, changed=done.changed)
