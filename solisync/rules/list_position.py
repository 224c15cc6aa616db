"""Positions in lists that clients read page by page: opaque text, which stays valid when the row is gone.

A position is the time and the id of the last row shown, as 24 bytes in base64url (RFC 4648 §5): 8 of microseconds since
1970, signed and big-endian, and 16 of the UUID. So each position has one spelling, of 32 characters.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from struct import Struct
from typing import Annotated, NamedTuple
from uuid import UUID

from msgspec import Meta

from ..errors import BadRequest
from .shapes import EPOCH

_BYTES = Struct(">q16s")
_PATTERN = "^[A-Za-z0-9_-]{32}$"
_SPELLING = re.compile(_PATTERN[1:-1])
_MICROSECOND = timedelta(microseconds=1)

PositionText = Annotated[
    str, Meta(pattern=_PATTERN, description="`next` of the page before; absent for the first page")
]


class ListPosition(NamedTuple):
    """A place between two rows of a list that is ordered by time and id."""

    time: datetime
    id: str

    @property
    def text(self) -> str:
        """The position as clients see it."""
        packed = _BYTES.pack((self.time - EPOCH) // _MICROSECOND, UUID(self.id).bytes)
        return urlsafe_b64encode(packed).decode("ascii")


def read_position(values: list[str], name: str) -> ListPosition | None:
    """The position in the query, given all values of the parameter `name`; None for the first page.

    Raises BadRequest for anything that `Position.text` can't have returned.
    """
    if not values:
        return None
    if len(values) == 1 and _SPELLING.fullmatch(values[0]):
        microseconds, uuid = _BYTES.unpack(urlsafe_b64decode(values[0]))
        try:
            return ListPosition(EPOCH + timedelta(microseconds=microseconds), str(UUID(bytes=uuid)))
        except OverflowError:
            pass  # no time of the years 1 to 9999
    raise BadRequest("bad_query", f"{name} must be what an earlier page gave as next")
