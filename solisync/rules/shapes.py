"""Message shapes of several nouns."""

from msgspec import Struct


class Ok(Struct, frozen=True):
    """Done; there is nothing else to say."""

    ok: bool = True


class ErrorBody(Struct, frozen=True):
    """What every answer of status 400 and above contains."""

    error: str
