"""The history of a player: events and acts together, for the console and for `solisync users history`."""

from operator import attrgetter

from ...postgres.transaction import Statements
from ...storage import acts, history
from ...storage.acts import RecordedAct
from ...storage.history import HistoryLine
from .shapes import HistoryEntry


async def of_player(statements: Statements, user_id: str, *, most: int) -> list[HistoryEntry]:
    """What has happened to a player lately, and what operators have done, the last first."""
    entries = [_of_event(line) for line in await history.of_player(statements, user_id, most=most)]
    entries += [_of_act(act) for act in await _latest_acts(statements, user_id, most)]
    return sorted(entries, key=attrgetter("at"), reverse=True)[:most]


async def _latest_acts(statements: Statements, user_id: str, most: int) -> list[RecordedAct]:
    found: list[RecordedAct] = []
    async for page in acts.listed(statements, user_id=user_id):
        found += page
        if len(found) >= most:
            break
    return found[:most]


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
