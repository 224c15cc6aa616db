"""Message shapes that several resources share, and types of fields: integers with exact ranges, times, UUIDs."""

import re
from datetime import UTC, datetime
from functools import cache
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, Struct, inspect

MAX_BODY = 1_048_576
"""The most bytes of a request body, and so of an avatar, a replay and a player's progress."""

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NIL = str(UUID(int=0))

U32 = Annotated[int, Meta(ge=0, le=U32_MAX, examples=[7])]
# msgspec's bounds end at int64, so `Checked` checks the upper bound. Generators refuse a larger `maximum`, too.
U64 = Annotated[int, Meta(ge=0, extra_json_schema={"format": "uint64"}, examples=[120])]
Time = Annotated[datetime, Meta(tz=True)]
Id = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]

SpelledTime = Annotated[str, Meta(pattern=r"(?:[Zz]|[+-]\d\d:\d\d)$")]  # msgspec accepts offsets without a colon
_NO_COLON = re.compile(rb':[0-9]{2}(?:\.[0-9]+)?[+-][0-9]{4}"')
NO_OFFSET = "a time must end in Z or an offset like +01:00"

_HYPHENATED = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_UUID = re.compile(rf"(?:urn:uuid:)?({_HYPHENATED})|\{{({_HYPHENATED})\}}|([0-9a-f]{{32}})", re.IGNORECASE | re.ASCII)
_CANONICAL = re.compile(_HYPHENATED)


class Ok(Struct, frozen=True):
    """The request has succeeded."""

    ok: bool = True


class ErrorBody(Struct, frozen=True):
    """The body of every error."""

    error: str


class Features(Struct, frozen=True, kw_only=True):
    """Optional parts that the operator has turned on; treat an absent feature as false."""

    pages: Annotated[bool, Meta(description="whether there are pages for players, such as /replays/{id}")]
    public_avatars: Annotated[bool, Meta(description="whether avatars need no token")]


class Alive(Struct, frozen=True):
    """The process answers."""

    version: str
    features: Features
    status: str = "ok"


class Ready(Struct, frozen=True):
    """The service can work."""

    status: str = "ready"


class Checked(Struct, frozen=True):
    """A shape that checks the upper bound of its U64 fields and converts its times to UTC when decoded."""

    def __post_init__(self) -> None:
        for name in _unbounded(type(self)):
            value = getattr(self, name)
            if type(value) is int:
                if value > U64_MAX:
                    raise ValueError(f"`{name}` must be at most {U64_MAX}")
            elif value is not None and value.tzinfo is not UTC:
                msgspec.structs.force_setattr(self, name, utc(name, value))


@cache
def _unbounded(shape: type[Checked]) -> tuple[str, ...]:
    """The fields of `shape` that are of type U64 or Time.

    Fast path: replaces a look at every field of every achievement, 40,000 instructions of a push, see
    docs/performance.md.
    """
    description = inspect.type_info(shape)
    assert isinstance(description, inspect.StructType)
    return tuple(field.name for field in description.fields if _is_unbounded(field.type))


def _is_unbounded(kind: inspect.Type) -> bool:
    match kind:
        case inspect.Metadata(type=inner):
            return _is_unbounded(inner)
        case inspect.UnionType(types=types):
            return any(map(_is_unbounded, types))
        case inspect.IntType(le=None) | inspect.DateTimeType():
            return True
    return False


def utc(name: str, value: datetime) -> datetime:
    """The time in UTC; raises ValueError with the name of its field for a time outside of the years 1 to 9999."""
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"`{name}` lies outside of the years 1 to 9999") from None


def moment(text: str) -> datetime | None:
    """A date, which means its beginning in UTC, or a date and time, of the years 1970 to 9998; None otherwise."""
    try:
        found = msgspec.convert(f"{text}T00:00:00Z" if len(text) == len("2026-11-20") else text, Time).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError):
        return None
    return found if 1970 <= found.year < 9999 else None


def may_lack_colon(json: bytes) -> bool:
    """Return whether a time in the JSON may have an offset without a colon.

    Fast path: only JSON that may be wrong is decoded with SpelledTime, see docs/performance.md.
    """
    return b"\\" in json or _NO_COLON.search(json) is not None


def canonical_uuid(text: str) -> str | None:
    """The canonical form of a UUID, also of a URN (RFC 4122 §3), or with braces or without hyphens; None otherwise."""
    if is_id(text):
        return text
    match = _UUID.fullmatch(text)
    return str(UUID(match[1] or match[2] or match[3])) if match else None


def is_id(text: str) -> bool:
    """Return whether `text` is a UUID in canonical form; paths accept only that, so that everything has one URL."""
    return _CANONICAL.fullmatch(text) is not None
