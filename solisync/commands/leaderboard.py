"""`solisync leaderboard`: hiding a player's entry, and showing it again."""

from ..errors import NotFound
from ..events.notices import BoardsChanged
from ..events.telling import tell
from ..storage import leaderboard
from .task import Task, player


async def hide(task: Task) -> None:
    """Hide a player's entry; the bests in it are kept."""
    await _set_visible(task, False)


async def show(task: Task) -> None:
    """Show a player's entry again."""
    await _set_visible(task, True)


async def _set_visible(task: Task, visible: bool) -> None:
    async with task.database() as database:
        found = await database.autocommit(player, task.chosen.user)
        name = await database.autocommit(leaderboard.set_visible, found.id, visible)
        if name is None:
            raise NotFound("not_found", f"'{found.username}' has no entry on the leaderboard")
        await tell(database, BoardsChanged())
        done = "can be seen" if visible else "is hidden, until the player opts in again"
        task.output.say(f"the entry '{name}' of '{found.username}' {done}", username=found.username, visible=visible)
