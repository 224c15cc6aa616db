"""`solisync users history`: what has happened to a player."""

from operator import itemgetter

from ..postgres.transaction import Statements
from ..storage import acts, history
from ..storage.acts import RecordedAct
from ..storage.history import HistoryLine
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
    most: int = task.chosen.limit
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        lines = [(each.at, _of_event(each)) for each in await history.of_player(statements, found.id, most=most)]
        lines += [(each.at, _of_act(each)) for each in await _latest_acts(statements, found.id, most)]
        write = task.output.table(COLUMNS)
        for _, line in sorted(lines, key=itemgetter(0), reverse=True)[:most]:
            write(line if task.output.json else line | {"details": _details(line)})


async def _latest_acts(statements: Statements, user_id: str, most: int) -> list[RecordedAct]:
    found: list[RecordedAct] = []
    async for page in acts.listed(statements, user_id=user_id):
        found += page
        if len(found) >= most:
            break
    return found[:most]


def _of_event(line: HistoryLine) -> dict[str, object]:
    of_event = {"what": line.event, "times": line.times, "client": line.client, "reason": line.reason}
    return {"at": line.at, **of_event, **dict.fromkeys(("by", "note", "before", "after", "replay_id"))}


def _of_act(act: RecordedAct) -> dict[str, object]:
    of_act = {name: getattr(act, name) for name in ("reason", "note", "before", "after", "replay_id")}
    return {"at": act.at, "what": act.act, "times": 1, "client": None, "by": act.actor, **of_act}


def _details(line: dict[str, object]) -> str | None:
    """Why, and what has changed, in a few words."""
    changed = " → ".join(str(line[name]) for name in ("before", "after") if line[name] is not None)
    return "; ".join(str(each) for each in (line["reason"], changed, line["note"], line["replay_id"]) if each) or None
