"""Message shapes of several nouns."""

from msgspec import Struct

MAX_BODY = 1_048_576
"""The most bytes of a request body, and so of an avatar, a replay and a player's progress."""


class Ok(Struct, frozen=True):
    """Done; there is nothing else to say."""

    ok: bool = True


class ErrorBody(Struct, frozen=True):
    """What every answer of status 400 and above contains."""

    error: str
