"""`solisync users`: listing, showing, renaming and deleting players."""

from dataclasses import asdict as fields_of

from msgspec.structs import asdict

from ..acts import players as acts
from ..errors import FatalError
from ..players.facts import facts
from ..rules.accounts import check_username
from ..rules.texts import bytes_shown
from ..storage import players
from ..storage.paging import FIRST_TIME
from ..storage.players import ListedPlayer
from .output import Column
from .task import Task, player

COLUMNS = (
    Column("username", 32),
    Column("id", 36),
    Column("created_at", 19),
    Column("used_at", 19),
    Column("bytes", 10, right=True),
    Column("avatar", 6),
)
MOST = 1_000  # players in an order that no index has: all of them are read for it, and these sorted


async def show_list(task: Task) -> None:
    """List the players in the wanted order, up to the limit that was given."""
    left, order = task.chosen.limit, task.chosen.order
    chosen = {"prefix": task.chosen.name, "since": task.chosen.since or FIRST_TIME}
    if order != "name" and (left or 0) > MOST:
        raise FatalError(f"solisync: by {order}, at most {MOST:,} players are listed: give a --limit up to that")
    if left == 0:
        return
    async with task.connection() as statements:
        write = task.output.table(COLUMNS)
        if order != "name":
            for each in await players.by(statements, order, most=left or MOST, **chosen):
                write(_line(each, task))
            return
        async for page in players.by_name(statements, **chosen):
            for each in page[:left]:
                write(_line(each, task))
            if left is not None:
                left -= len(page)
                if left <= 0:
                    return


async def show_one(task: Task) -> None:
    """Show what is stored about a player, in numbers."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        task.output.facts(asdict(await facts(statements, found.id)))


async def rename(task: Task) -> None:
    """Change a player's username, by the rules of registering."""
    username = check_username(task.chosen.username)
    async with task.acting() as acting:
        found = await acting.database.run(player, task.chosen.user)
        done = await acts.perform_rename(acting, found.id, username)
        former = done.before or username
        task.output.say(f"'{former}' is called '{username}' now", id=found.id, former=former, username=username)


async def delete(task: Task) -> None:
    """Delete a player, as DELETE /api/account does."""
    async with task.acting() as acting:
        found = await acting.database.run(player, task.chosen.user)
        await acting.perform(acts.DELETE, found.id)
        task.output.say(f"deleted '{found.username}' and all that was theirs", id=found.id, username=found.username)


def _line(each: ListedPlayer, task: Task) -> dict[str, object]:
    return fields_of(each) | ({} if task.output.json else {"bytes": bytes_shown(each.bytes)})
