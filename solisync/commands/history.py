"""`solisync users history`: what has happened to a player."""

from msgspec.structs import asdict

from ..players.facts import history_of
from .output import Column
from .task import Task, player

COLUMNS = (
    Column("at", 19),
    Column("what", 24),
    Column("times", 5, right=True),
    Column("client", 21),
    Column("by", 16),
    Column("details", 40),
)


async def show(task: Task) -> None:
    """List what has happened to a player lately, and what operators have done, the last first."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        write = task.output.table(COLUMNS)
        entries, _ = await history_of(statements, found.id, most=task.chosen.limit)
        for entry in entries:
            line = asdict(entry)
            write(line if task.output.json else line | {"details": _details(line)})


def _details(line: dict[str, object]) -> str | None:
    """Why, and what has changed, in a few words."""
    changed = " → ".join(str(line[name]) for name in ("before", "after") if line[name] is not None)
    return "; ".join(str(each) for each in (line["reason"], changed, line["note"], line["replay_id"]) if each) or None
