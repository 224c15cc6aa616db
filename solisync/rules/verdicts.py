"""Verdicts on replays: the message shape (docs/protocol.md "Replays")."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .fields import Time

VerdictStatus = Literal["pending", "verified", "refuted", "undecided", "unreadable"]


class VerdictAnswer(Struct, frozen=True):
    """What a check has found out; all but the status is null before the first check."""

    status: VerdictStatus
    ruleset: Annotated[str | None, Meta(description="this and the next three are null unless it is verified")]
    undos: Annotated[int | None, Meta(description="the fewest that make the recorded moves a won game with this score")]
    score: int | None
    moves: Annotated[int | None, Meta(description="as recorded, those that were undone included")]
    reason: (
        Literal[
            "no_seed",
            "no_moves",
            "shape",
            "illegal_move",
            "not_won",
            "score",
            "no_explanation",
            "budget",
            "crashed",
            "seed_rounded",
        ]
        | None
    )
    checked_at: Time | None
