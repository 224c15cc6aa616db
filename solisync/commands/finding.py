"""`solisync users find`: players by what somebody remembers of their names, or by an address."""

from dataclasses import asdict

from ..access.client_address import bucket, parse_address
from ..errors import FatalError
from ..postgres.transaction import Statements
from ..rules.shapes import canonical_uuid
from ..storage import history, players
from ..storage.players import MOST, FoundPlayer
from .output import Column
from .task import Task

COLUMNS = (
    Column("username", 32),
    Column("id", 36),
    Column("created_at", 19),
    Column("suspended_since", 19),
    Column("locked_since", 19),
    Column("display_name", 32),
)
PART_SECONDS = 30.0  # after which a search for a part of a name ends; enough for millions of names
ONLY = "only the first {} are listed"
VISITORS = (Column("username", 32), Column("id", 36), Column("last_at", 19), Column("events", 8, right=True))


async def find(task: Task) -> None:
    """List the players found, and say so when there may be more."""
    text = task.chosen.text.strip()
    if not text:
        raise FatalError("solisync: say what to look for")
    if task.chosen.address:
        await _find_visitors(task, text)
        return
    async with task.connection() as statements:
        found, cut = await _find(task, statements, text)
    write = task.output.table(COLUMNS)
    for each in found[:MOST]:
        write(asdict(each))
    if len(found) > MOST:
        task.progress.remark(ONLY.format(MOST))
    elif cut is not None:
        task.progress.remark(cut)


async def _find_visitors(task: Task, text: str) -> None:
    """List the players to whom something has happened from an address, the last first."""
    address = parse_address(text)
    if address is None:
        raise FatalError(f"solisync: '{text}' is not an address")
    async with task.connection() as statements:
        found = await history.of_client(statements, bucket(address), most=MOST + 1)
    write = task.output.table(VISITORS)
    for each in found[:MOST]:
        write(asdict(each))
    if len(found) > MOST:
        task.progress.remark(ONLY.format(MOST))


async def _find(task: Task, statements: Statements, text: str) -> tuple[list[FoundPlayer], str | None]:
    """The players found, and what to say of those that were not looked at."""
    if task.chosen.part or task.chosen.display_name:
        return await _find_part(task, statements, text)
    user_id = canonical_uuid(text)
    found = await players.by_ids(statements, [user_id]) if user_id else []
    return found or await players.by_beginning(statements, text, most=MOST + 1), None


async def _find_part(task: Task, statements: Statements, text: str) -> tuple[list[FoundPlayer], str | None]:
    wanted = {"display_names": task.chosen.display_name, "most": MOST}
    found, following = await players.by_part(statements, task.reactor, text, seconds=PART_SECONDS, **wanted)
    if following is None:
        return found, None
    return found, f"ended after {PART_SECONDS:g} s: there may be more" if len(found) < MOST else ONLY.format(MOST)
