"""The record of acts as operators see it: each act with the request that reverses it."""

from dataclasses import dataclass, fields, replace
from datetime import datetime

from ..rules.undo import Undo, undo_of
from ..storage.operators.acts import INVERSES, RecordedAct
from .act import Act, Done


@dataclass(frozen=True, slots=True)
class ListedAct(RecordedAct):
    """A recorded act; `user_id` and `username` are null if the player has been deleted.

    `inverse` is the act that reverses it, and `undo` the request for that; both are null if there is none or the effect
    no longer stands.
    """

    undo: Undo | None


def listed(act: RecordedAct, now: datetime) -> ListedAct:
    """Return an act of the record with the request that reverses it."""
    undo = undo_of(
        act.inverse, user_id=act.user_id, username=act.username, replay_id=act.replay_id, before=act.before, now=now
    )
    stands = replace(act, inverse=None if undo is None else act.inverse)
    return ListedAct(**{field.name: getattr(stands, field.name) for field in fields(RecordedAct)}, undo=undo)


def undo_after(act: Act, done: Done, target: str, now: datetime) -> Undo | None:
    """Return the request that reverses an act that was just performed on this player or replay."""
    if not done.changed or done.player is None or act.name not in INVERSES:
        return None
    return undo_of(
        INVERSES[act.name][0],
        user_id=done.player.id,
        username=done.after if act.name == "rename" else done.player.username,
        replay_id=target,
        before=done.before,
        now=now,
    )
