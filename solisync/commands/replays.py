"""`solisync replays`: deleting replays."""

from ..errors import NotFound
from ..postgres.database import Database
from ..rules.ids import canonical_uuid
from ..storage import replays
from .task import Task


async def delete(task: Task) -> None:
    """Delete those of the given replays that exist; raises NotFound for the others."""
    wanted = {text: canonical_uuid(text) for text in task.chosen.ids}

    async def change(database: Database) -> None:
        deleted = await database.autocommit(replays.delete, sorted({*filter(None, wanted.values())}))
        missing = [text for text, replay_id in wanted.items() if replay_id not in deleted]
        if deleted:
            count = f"{len(deleted)} replay{'' if len(deleted) == 1 else 's'}"
            task.output.say(
                f"deleted {count}; bests that came from them stay on the leaderboard", deleted=sorted(deleted)
            )
        if missing:
            raise NotFound("replay_not_found", f"no such replay: {', '.join(missing)}")

    await task.writing(change)
