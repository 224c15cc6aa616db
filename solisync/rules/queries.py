"""Query parameters that several lists share: a limit, a choice, a position. Each may occur once.

A position is opaque text. It encodes the order and the id of the last row shown, and so stays valid if that row is
deleted. Its bytes, in base64url (RFC 4648 §5), are integers, then 8 bytes of microseconds since 1970, signed and
big-endian, then the 16 bytes of the UUID. So each position has one spelling.
"""

import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple, TypeVar
from uuid import UUID

from msgspec import Meta

from ..errors import BadRequest
from . import shapes
from .shapes import EPOCH

T = TypeVar("T")

_NUMBER = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)
_MICROSECOND = timedelta(microseconds=1)

PositionText = Annotated[
    str, Meta(pattern="^[A-Za-z0-9_-]{32}$", description="`next` of the previous page; absent for the first page")
]

PageText = Annotated[
    str, Meta(pattern="^([A-Za-z0-9_-]{32})?$", description="`next` of the previous page; empty for the first page")
]


class ListPosition(NamedTuple):
    """A place between two rows of a list that is ordered by time and id."""

    time: datetime
    id: str

    @property
    def text(self) -> str:
        """The position as clients receive and send it."""
        return position_text("", *self)


def position_text(integers: str, *order: Any) -> str:
    """The text of a position: integers with these format characters of struct, the time, and the id."""
    *numbers, time, row_id = order
    packed = struct.pack(f">{integers}q16s", *numbers, (time - EPOCH) // _MICROSECOND, UUID(row_id).bytes)
    return urlsafe_b64encode(packed).rstrip(b"=").decode("ascii")


def position_of(values: list[str], name: str, make: Callable[..., T], integers: str = "") -> T | None:
    """Decode a position by `make`; None for the first page. Raises BadRequest if the text isn't a position."""
    if not values:
        return None
    if len(values) == 1:
        with suppress(ValueError, OverflowError, struct.error):  # wrong base64 or length, or after the year 9999
            packed = urlsafe_b64decode(values[0] + "=" * (-len(values[0]) % 4))
            *numbers, microseconds, uuid = struct.unpack(f">{integers}q16s", packed)
            order = (*numbers, EPOCH + timedelta(microseconds=microseconds), str(UUID(bytes=uuid)))
            if position_text(integers, *order) == values[0]:
                return make(*order)
    raise BadRequest("bad_query", f"{name} must be what an earlier page gave as next")


def read_position(values: list[str], name: str) -> ListPosition | None:
    """The position in the query; None for the first page. Raises BadRequest for any other text."""
    return position_of(values, name, ListPosition)


def whole_number(values: list[str], name: str, least: int, most: int, *, default: int) -> int:
    """The number in a parameter, or `default` without one; raises BadRequest for a number out of range."""
    if not values:
        return default
    if len(values) == 1 and _NUMBER.fullmatch(values[0]) and least <= int(values[0]) <= most:
        return int(values[0])
    raise BadRequest("bad_query", f"{name} must be a whole number from {least} to {most}")


def choice(values: list[str], name: str, choices: Sequence[str]) -> str | None:
    """The choice that a parameter names, or None without one; raises BadRequest for any other text."""
    if not values:
        return None
    if len(values) > 1 or values[0] not in choices:
        raise BadRequest("bad_query", f"{name} must be {'one of ' * (len(choices) > 1)}{', '.join(choices)}")
    return values[0]


def moment(values: list[str], name: str) -> datetime | None:
    """The time in a parameter, or None without one; raises BadRequest for any other text."""
    if not values:
        return None
    found = shapes.moment(values[0]) if len(values) == 1 else None
    if found is None:
        raise BadRequest("bad_query", f"{name} must be a date or a time, like 2026-11-20 or 2026-11-20T12:00:00Z")
    return found
