"""`solisync replays`: deleting replays, having them checked, and looking at their verdicts."""

import zlib
from collections.abc import Sequence
from dataclasses import asdict

from ..errors import NotFound
from ..events.notices import BoardsChanged, ReplayStored
from ..events.telling import tell
from ..klondike import UnreadableError, draw_game, read_recording, undo_places
from ..rules.ids import canonical_uuid
from ..storage import rechecks, replays, verdicts
from ..storage.verdicts import CheckedReplay
from .task import Task


async def delete(task: Task) -> None:
    """Delete those of the given replays that exist; raises NotFound for the others."""
    wanted = {text: canonical_uuid(text) for text in task.chosen.ids}
    async with task.database() as database:
        deleted = await database.autocommit(replays.delete, sorted({*filter(None, wanted.values())}))
        missing = [text for text, replay_id in wanted.items() if replay_id not in deleted]
        if deleted:
            await tell(database, BoardsChanged())
            count = f"{len(deleted)} replay{'' if len(deleted) == 1 else 's'}"
            task.output.say(
                f"deleted {count}; bests that came from them stay on the leaderboard", deleted=sorted(deleted)
            )
        _refuse(missing)


async def check(task: Task) -> None:
    """Have replays checked, `again` those too that have a verdict: the given ones soon, without any all of them."""
    again = task.chosen.again
    wanted = {text: canonical_uuid(text) for text in task.chosen.ids}
    async with task.database() as database:
        if not wanted:
            await database.autocommit(rechecks.sweep_again, again=again)
            which = "all replays" if again else "all replays that have no verdict"
            task.output.say(f"{which} will be checked when there is nothing else to check", all=True, again=again)
            return
        found = await database.autocommit(rechecks.enqueue, sorted({*filter(None, wanted.values())}), again=again)
        await tell(database, ReplayStored())
        added = sorted(replay_id for replay_id, was_added in found.items() if was_added)
        left = len(found) - len(added)
        text = f"{len(added)} replay{'' if len(added) == 1 else 's'} will be checked now"
        task.output.say(text + (f"; {left} with a verdict left alone" if left else ""), added=added)
        _refuse([text for text, replay_id in wanted.items() if replay_id not in found])


async def show(task: Task) -> None:
    """Show a replay's header and verdict, and draw the deal, or with `boards` the board after each step."""
    replay_id = canonical_uuid(task.chosen.id)
    async with task.connection() as statements:
        found = None if replay_id is None else await verdicts.show(statements, replay_id)
        if found is None:
            raise NotFound("replay_not_found", f"no such replay: {task.chosen.id}")
        facts = asdict(found)
        del facts["body"], facts["timeline"]
        task.output.facts(facts)
        if not task.output.json:
            _draw(task, found)


def _draw(task: Task, replay: CheckedReplay) -> None:
    try:
        recording = read_recording(replay.body.encode())
    except UnreadableError:
        return
    undos = () if replay.timeline is None else undo_places(zlib.decompress(replay.timeline))
    for text in draw_game(recording, replay.ruleset, undos):
        task.output.text(f"\n{text}\n")
        if not task.chosen.boards:
            return


def _refuse(missing: Sequence[str]) -> None:
    if missing:
        raise NotFound("replay_not_found", f"no such replay: {', '.join(missing)}")
