"""`solisync acts`: the record of what operators have done."""

from dataclasses import asdict

from ..storage import acts
from .output import Column
from .task import Task, player

COLUMNS = (
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


async def show_list(task: Task) -> None:
    """List acts, the newest first."""
    left, wanted = task.chosen.limit, {"act": task.chosen.act, "actor": task.chosen.actor}
    async with task.connection() as statements:
        if task.chosen.user is not None:
            wanted["user_id"] = (await player(statements, task.chosen.user)).id
        write = task.output.table(COLUMNS)
        async for page in acts.listed(statements, **wanted):
            for each in page[:left]:
                write(asdict(each))
            if left is not None:
                left -= len(page)
                if left <= 0:
                    return
