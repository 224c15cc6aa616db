"""`solisync replays`: lists of replays, their verdicts, and acts on them."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from msgspec import structs

from ..acts import replays
from ..acts.act import Act, Acting, Done
from ..errors import FatalError, NotFound
from ..klondike import UNPROVED, UnreadableError, draw_game, in_words, prove, read_recording
from ..rules.recovery import on_site
from ..rules.shapes import canonical_uuid
from ..storage.replays import listed_replays, rechecks, verdicts
from ..storage.replays.listed_replays import SameGame
from ..storage.replays.verdicts import CheckedGame
from .output import Column, shown
from .task import Task, player


async def delete(task: Task) -> None:
    """Delete the given replays; raises NotFound afterwards for the ids that don't exist."""
    wanted = {text: canonical_uuid(text) for text in task.chosen.ids}
    async with task.acting() as acting:
        deleted = await _each(acting, replays.delete, wanted)
        if deleted:
            text = f"deleted {_replays(deleted)}; best scores stay on the leaderboard"
            task.output.say(text, deleted=sorted(deleted))
        _refuse(wanted, deleted)


async def unlist(task: Task) -> None:
    """Take replays off public lists, and prevent their players from listing them again."""
    await _hold(task, replays.unlist, "unlisted")


async def list_again(task: Task) -> None:
    """Release replays that an operator unlisted, or that were uploaded under a lock, and list them."""
    await _hold(task, replays.list_again, "listed")


async def _hold(task: Task, act: Act, state: str) -> None:
    wanted = {text: canonical_uuid(text) for text in task.chosen.ids}
    async with task.acting() as acting:
        found = await _each(acting, act, wanted)
        if found:
            changed = sorted(replay_id for replay_id, done in found.items() if done.changed)
            hidden = sorted(replay_id for replay_id in changed if found[replay_id].after)
            left = len(found) - len(changed)
            shown = [replay_id for replay_id in changed if replay_id not in hidden]
            text = f"{state} {_replays(shown)}"
            text += f"; still hidden by their players: {len(hidden)}" if hidden else ""
            task.output.say(text + (f"; unchanged: {left}" if left else ""), changed=changed, hidden=hidden)
        _refuse(wanted, found)


async def check(task: Task) -> None:
    """Queue the given replays for checking, or all replays without ids; with `again`, also those with a verdict."""
    again = task.chosen.again
    wanted = {text: canonical_uuid(text) for text in task.chosen.ids}
    async with task.acting() as acting:
        if not wanted:
            await acting.database.run(rechecks.sweep_again, again=again)
            acting.log_for_all("check of all replays")
            which = "all replays" if again else "all replays without a verdict"
            task.output.say(f"queued {which} for checking, after all others", all=True, again=again)
            return
        found = await _each(acting, replays.check, wanted, again=again)
        added = sorted(replay_id for replay_id, done in found.items() if done.changed)
        left = len(found) - len(added)
        text = f"queued {_replays(added)} for checking"
        task.output.say(text + (f"; skipped because they have a verdict: {left}" if left else ""), added=added)
        _refuse(wanted, found)


async def show(task: Task) -> None:
    """Show a replay's header and verdict, and draw the deal; with `boards`, draw the board after each step."""
    replay_id = canonical_uuid(task.chosen.id)
    async with task.connection() as statements:
        found = None if replay_id is None else await verdicts.show(statements, replay_id)
        if found is None:
            raise NotFound("replay_not_found", f"no such replay: {task.chosen.id}")
        facts = structs.asdict(found.replay)
        del facts["user_id"]
        proved = found.replay.proved or (prove(found.body) if found.replay.status in UNPROVED else None)
        facts |= {"proved": proved, "finding": in_words(found.replay.final_score, proved)}
        facts["page"] = on_site(task.settings.site_url, f"/replays/{found.replay.id}")
        same = await listed_replays.same_game(statements, found.replay.id)
        facts["same_game"] = [asdict(each) for each in same] if task.output.json else _in_words(same)
        if not task.output.json:
            del facts["proved"]  # the finding has it in words
        task.output.facts(facts)
        if not task.output.json:
            _draw(task, found)


def _in_words(same: Sequence[SameGame]) -> str | None:
    return ", ".join(f"{each.replay_id} of '{each.username}', {shown(each.received_at)}" for each in same) or None


def _draw(task: Task, game: CheckedGame) -> None:
    try:
        recording = read_recording(game.body)
    except UnreadableError:
        return
    for text in draw_game(recording, game.replay.ruleset, game.undo_places):
        task.output.text(f"\n{text}\n")
        if not task.chosen.boards:
            return


async def _each(acting: Acting, act: Act, wanted: Mapping[str, str | None], **given: Any) -> dict[str, Done]:
    """Perform an act on each of these replays, each in its own transaction.

    Returns the result for each replay that exists, by id.
    """
    found = {}
    for replay_id in sorted({*filter(None, wanted.values())}):
        with suppress(NotFound):
            found[replay_id] = await acting.perform(act, replay_id, **given)
    return found


def _replays(ids: Collection[str]) -> str:
    return f"{len(ids)} replay{'' if len(ids) == 1 else 's'}"


def _refuse(wanted: Mapping[str, str | None], found: Collection[str]) -> None:
    """Raise NotFound if any of the wanted replays was not found."""
    missing = [text for text, replay_id in wanted.items() if replay_id not in found]
    if missing:
        raise NotFound("replay_not_found", f"no such replay: {', '.join(missing)}")


COLUMNS = (
    Column("id", 36),
    Column("username", 20),
    Column("received_at", 19),
    Column("mode", 10),
    Column("final_score", 11, right=True),
    Column("verdict", 10),
    Column("listed", 6),
    Column("held", 4),
    Column("finding", 40),
)
TOP_COLUMNS = (
    Column("username", 20),
    Column("display_name", 20),
    Column("best_score", 10, right=True),
    Column("recorded_at", 19),
    Column("verdict", 10),
    Column("replay_id", 36),
    Column("finding", 40),
)


async def show_list(task: Task) -> None:
    """List replays, or entries of the leaderboard that no replay proves."""
    chosen = task.chosen
    if chosen.top and (chosen.user or chosen.verdict or chosen.held):
        raise FatalError("solisync: --top can't be combined with --user, --verdict or --held")
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
