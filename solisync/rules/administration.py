"""Acts of operators: reasons, notes and messages (docs/moderation.md)."""

from datetime import UTC, datetime
from typing import Literal, get_args

from ..errors import BadRequest

Reason = Literal["name", "avatar", "cheating", "spam", "takeover", "request", "legal", "other"]

REASONS: tuple[Reason, ...] = get_args(Reason)
NOTE_MAX = 500  # code points
MESSAGE_MAX = 200


def check_text(text: str, name: str, most: int) -> str:
    """The text without white space around it; raises BadRequest if it is too long, or empty, or no text column has it.

    `name` is what the error calls it, `most` its greatest length in code points.
    """
    text = text.strip()
    if not text or len(text) > most:
        raise BadRequest("bad_field", f"{name} must be 1-{most} characters")
    if not all(character.isprintable() or character == "\n" for character in text):
        raise BadRequest("bad_field", f"{name} must not contain control characters")
    return text


def suspension_text(until: datetime | None, message: str | None) -> str:
    """The sentence of the error: until when, and the message of the operator."""
    ends = "" if until is None else f" until {until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"this account is suspended{ends}" + (f": {message}" if message else "")
