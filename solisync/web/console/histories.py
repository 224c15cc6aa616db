"""The history of a player: events and acts together, for the console and for `solisync users history`."""

import re
from collections.abc import Iterable
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from ...errors import BadRequest
from ...postgres.transaction import Statements
from ...storage import acts, history
from ...storage.acts import RecordedAct
from ...storage.history import HistoryLine
from ...storage.paging import LAST_NUMBER
from .shapes import HistoryEntry


class HistoryPlace(NamedTuple):
    """The numbers of the event and of the act before which a page begins."""

    event: int = LAST_NUMBER
    act: int = LAST_NUMBER

    def __str__(self) -> str:
        return f"{self.event}.{self.act}"


def read_place(values: list[str]) -> HistoryPlace:
    """The place before which a page begins; raises BadRequest for what is none."""
    if not values:
        return HistoryPlace()
    numbers = re.fullmatch(r"(\d{1,19})\.(\d{1,19})", values[0], re.ASCII) if len(values) == 1 else None
    place = HistoryPlace(*map(int, numbers.groups())) if numbers else None
    if place is None or max(place) > LAST_NUMBER:
        raise BadRequest("bad_query", "before must be what an earlier page gave as next")
    return place


async def of_player(
    statements: Statements, user_id: str, *, most: int, before: HistoryPlace | None = None
) -> tuple[list[HistoryEntry], HistoryPlace | None]:
    """Up to `most` of what has happened to a player, and of what operators have done, the last first.

    With it comes the place of the next page, if there is one. Events and acts keep their own order, so that no page
    leaves out or repeats any of them, whatever their times are.
    """
    place = before or HistoryPlace()
    events = await history.of_player(statements, user_id, most=most + 1, before=place.event)
    done = await acts.page(statements, user_id=user_id, most=most + 1, before=place.act)
    both: list[list[HistoryLine | RecordedAct]] = [[*events], [*done]]
    merged = list(merge(*both, key=attrgetter("at"), reverse=True))
    shown = merged[:most]
    following = HistoryPlace(_last(shown, HistoryLine, place.event), _last(shown, RecordedAct, place.act))
    entries = [_of_event(each) if isinstance(each, HistoryLine) else _of_act(each) for each in shown]
    return entries, following if len(merged) > most else None


def _last(shown: Iterable[HistoryLine | RecordedAct], kind: type, otherwise: int) -> int:
    return min((each.id for each in shown if isinstance(each, kind)), default=otherwise)


def _of_event(line: HistoryLine) -> HistoryEntry:
    return HistoryEntry(at=line.at, what=line.event, times=line.times, client=line.client, reason=line.reason)


def _of_act(act: RecordedAct) -> HistoryEntry:
    return HistoryEntry(
        at=act.at,
        what=act.act,
        by=act.actor,
        reason=act.reason,
        note=act.note,
        before=act.before,
        after=act.after,
        replay_id=act.replay_id,
    )
