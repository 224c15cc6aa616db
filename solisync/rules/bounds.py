"""How much a player's progress may hold (docs/sync.md "The payload"), beside its size in bytes."""

from operator import gt
from typing import NamedTuple

from ..errors import BadRequest
from .sync import Document


class Lengths(NamedTuple):
    """The lengths of a document's lists and maps, and the number of its unknown fields."""

    achievements: int
    unlocked_card_backs: int
    unlocked_backgrounds: int
    weekly_goal_progress: int
    daily_challenge_history: int
    unknown_fields: int


MOST = Lengths(
    achievements=2_000,
    unlocked_card_backs=1_000,
    unlocked_backgrounds=1_000,
    weekly_goal_progress=1_000,
    daily_challenge_history=4_000,
    unknown_fields=2_000,
)
_NOTHING = Lengths(0, 0, 0, 0, 0, 0)


def check_bounds(document: Document, stored: Document | None) -> None:
    """Raise BadRequest for the first count over MOST, unless `stored` has as many: what a player has is theirs."""
    counts = _counts(document)
    if not any(map(gt, counts, MOST)):
        return
    known = _counts(stored) if stored else _NOTHING
    for name, count, most, had in zip(Lengths._fields, counts, MOST, known, strict=True):
        if count > max(most, had):
            raise BadRequest("sync_too_many", f"sync payload may have at most {most:,} {name.replace('_', ' ')}")


def _counts(document: Document) -> Lengths:
    payload, unknown_fields = document
    progress = payload.progress
    return Lengths(
        len(payload.achievements),
        len(progress.unlocked_card_backs),
        len(progress.unlocked_backgrounds),
        len(progress.weekly_goal_progress),
        len(progress.daily_challenge_history),
        unknown_fields.total,
    )
