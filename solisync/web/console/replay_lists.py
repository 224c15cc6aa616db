"""Lists of replays, those of all and those of a player, page by page."""

from typing import NamedTuple, get_args

from ...postgres.transaction import Statements
from ...rules.queries import ListPosition, choice, read_position
from ...rules.replays import VerdictStatus
from ...storage import listed_replays
from .pages_of_lists import OLDER, cut, page_size
from .parameters import flag
from .shapes import FoundReplays

CHOSEN_REPLAYS = {"verdict": VerdictStatus, "held": bool, **OLDER}


class Wanted(NamedTuple):
    """Which replays, and which page of them."""

    verdict: str | None
    held: bool
    before: ListPosition | None
    size: int


def read(verdict: list[str], held: list[str], before: list[str], limit: list[str]) -> Wanted:
    """What a query asks for; raises BadRequest."""
    status = choice(verdict, "verdict", get_args(VerdictStatus))
    return Wanted(status, flag(held, "held"), read_position(before, "before"), page_size(limit))


async def page(statements: Statements, wanted: Wanted, user_id: str | None = None) -> FoundReplays:
    """A page of all replays, or of a player's. One that looked at many, and found few, still has a next one."""
    verdict, held, before, size = wanted
    found = await listed_replays.page(
        statements, most=size + 1, user_id=user_id, verdict=verdict, held=held, before=before
    )
    end = None
    if len(found) <= size and (verdict or held):
        end = await listed_replays.end_of_page(statements, user_id=user_id, before=before)
    return FoundReplays(*cut(found, size, _place, None if end is None else end.text))


def _place(replay: listed_replays.FoundReplay) -> str:
    return ListPosition(replay.received_at, replay.id).text
