"""What operators have done to a player, as exports and commands show it: docs/moderation.md."""

from dataclasses import dataclass
from datetime import datetime

from ..postgres.declared import maybe
from ..postgres.statement import Query
from ..postgres.transaction import Statements
from ..rules.export import ExportedAct, ExportedModeration, ExportedSuspension


@dataclass(frozen=True, slots=True)
class CurrentRestrictions:
    """What holds for a player; all is None without a suspension, a cutoff, a lock."""

    since: datetime | None
    until: datetime | None
    message: str | None
    was_visible: bool | None
    access_cutoff: int | None
    locked_since: datetime | None


ACTS = Query(
    "acts_on_player",
    """
    SELECT at, act, replay_id, reason, note, before, after
    FROM admin_notes JOIN admin_acts ON admin_acts.id = act_id WHERE user_id = $1::uuid ORDER BY act_id
    """,
    row=ExportedAct,
)


@maybe(
    """
    SELECT suspensions.since, until, message, was_visible, cutoff AS access_cutoff, profile_locks.since AS locked_since
    FROM users
    LEFT JOIN suspensions ON suspensions.user_id = users.id
    LEFT JOIN access_cutoffs ON access_cutoffs.user_id = users.id
    LEFT JOIN profile_locks ON profile_locks.user_id = users.id
    WHERE users.id = $1::uuid
    """,
    row=CurrentRestrictions,
)
async def restrictions(user_id: str) -> CurrentRestrictions | None:
    """What holds for a player; None when they are gone."""


async def of(statements: Statements, user_id: str) -> ExportedModeration:
    """What operators have done to a player; nothing when they are gone."""
    now = await restrictions(statements, user_id)
    acts = await statements.many(ACTS, user_id)
    if now is None:
        return ExportedModeration(None, None, None, acts)
    suspension = None
    if now.since is not None:
        suspension = ExportedSuspension(now.since, now.until, now.message, bool(now.was_visible))
    return ExportedModeration(suspension, now.locked_since, now.access_cutoff, acts)
