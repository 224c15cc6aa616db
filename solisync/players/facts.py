"""The player as the console and `solisync users` show them: numbers, and a history of events and acts."""

import re
from collections.abc import Iterable
from datetime import datetime
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct, structs

from ..errors import BadRequest, existing
from ..postgres.transaction import Statements
from ..rules.administration import PlayerFacts
from ..rules.documents import read_stored
from ..rules.queries import EARLIER
from ..rules.recovery import on_site
from ..storage.operators import acts
from ..storage.operators.acts import ActFilter, RecordedAct
from ..storage.paging import LAST_NUMBER
from ..storage.players import accounts, history
from ..storage.players.history import HistoryLine


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """An event of a player, or an act of an operator; fields that don't apply are null."""

    at: datetime
    what: str
    times: int = 1
    client: str | None = None
    by: str | None = None
    reason: str | None = None
    note: str | None = None
    before: str | None = None
    after: str | None = None
    replay_id: str | None = None


class HistoryPlace(NamedTuple):
    """The numbers of the event and of the act before which a page begins."""

    event: int = LAST_NUMBER
    act: int = LAST_NUMBER

    def __str__(self) -> str:
        return f"{self.event}.{self.act}"


async def facts(statements: Statements, user_id: str, site_url: str | None) -> PlayerFacts:
    """The facts of a player; raises NotFound."""
    found = existing(await accounts.facts(statements, user_id), "player_not_found")
    page = found.facts.page and on_site(site_url, found.facts.page)
    if found.payload is None:
        return structs.replace(found.facts, page=page)
    payload = read_stored(found.payload).payload
    return structs.replace(
        found.facts,
        page=page,
        pushed_at=payload.last_modified,
        games_played=payload.stats.games_played,
        games_won=payload.stats.games_won,
        level=payload.progress.level,
    )


def read_place(text: str | None) -> HistoryPlace:
    """The place before which a page begins; raises BadRequest for any other text."""
    if text is None:
        return HistoryPlace()
    numbers = re.fullmatch(r"(\d{1,19})\.(\d{1,19})", text, re.ASCII)
    place = HistoryPlace(*map(int, numbers.groups())) if numbers else None
    if place is None or max(place) > LAST_NUMBER:
        raise BadRequest("bad_query", f"before must be {EARLIER}")
    return place


async def history_of(
    statements: Statements, user_id: str, *, most: int, before: HistoryPlace | None = None
) -> tuple[list[HistoryEntry], HistoryPlace | None]:
    """Up to `most` events of a player and acts on the player, latest first, and the place of the next page, if any.

    Events and acts keep their own order, so that no page omits or repeats one, whatever their times are.
    """
    place = before or HistoryPlace()
    events = await history.of_player(statements, user_id, most=most + 1, before=place.event)
    done = await acts.page(statements, ActFilter(user_id=user_id), most=most + 1, before=place.act)
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
