"""`solisync replays list`: what to look at, the newest first."""

from dataclasses import asdict

from ..errors import FatalError
from ..storage import listed_replays
from .output import Column
from .task import Task, player

COLUMNS = (
    Column("id", 36),
    Column("username", 20),
    Column("received_at", 19),
    Column("mode", 10),
    Column("final_score", 11, right=True),
    Column("verdict", 10),
    Column("listed", 6),
    Column("held", 4),
)
TOP_COLUMNS = (
    Column("username", 20),
    Column("display_name", 20),
    Column("best_score", 10, right=True),
    Column("recorded_at", 19),
    Column("verdict", 10),
    Column("replay_id", 36),
)


async def show_list(task: Task) -> None:
    """List replays, or entries of the leaderboard that no replay proves."""
    chosen = task.chosen
    if chosen.top and (chosen.user or chosen.verdict or chosen.held):
        raise FatalError("solisync: --top is for all players: give it without --user, --verdict and --held")
    async with task.connection() as statements:
        if chosen.top:
            write = task.output.table(TOP_COLUMNS)
            for entry in (await listed_replays.unproved(statements))[: chosen.limit]:
                write(asdict(entry))
            return
        wanted = {"verdict": chosen.verdict, "held": chosen.held, "most": chosen.limit}
        if chosen.user is not None:
            wanted["user_id"] = (await player(statements, chosen.user)).id
        write = task.output.table(COLUMNS)
        for replay in await listed_replays.page(statements, **wanted):
            write(asdict(replay))
