"""Verdicts on replays: the message shape (docs/protocol.md "Replays")."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from ..klondike import Reason, Status
from .fields import Time

VerdictStatus: TypeAlias = Literal[tuple(status.value for status in Status)]  # type: ignore[valid-type]
VerdictReason: TypeAlias = Literal[tuple(reason.value for reason in Reason)]  # type: ignore[valid-type]


class VerdictAnswer(Struct, frozen=True):
    """What a check has found out; all but the status is null before the first check."""

    status: VerdictStatus
    ruleset: Annotated[str | None, Meta(description="this and the next three are null unless it is verified")]
    undos: Annotated[int | None, Meta(description="the fewest that make the recorded moves a won game with this score")]
    score: int | None
    moves: Annotated[int | None, Meta(description="as recorded, those that were undone included")]
    reason: VerdictReason | None
    checked_at: Time | None
