"""Field types of several message shapes: integers with exact ranges, and times."""

import re
from datetime import UTC, datetime
from functools import cache
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, inspect

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1

U32 = Annotated[int, Meta(ge=0, le=U32_MAX, examples=[7])]
# msgspec's own bounds end at int64, so `Checked` checks the upper one
U64 = Annotated[int, Meta(ge=0, extra_json_schema={"maximum": U64_MAX, "format": "uint64"}, examples=[120])]
SEED_PATTERN = "^(0|[1-9][0-9]{0,19})$"  # of a seed as text; `read_seed` checks the upper bound
Time = Annotated[datetime, Meta(tz=True)]

SpelledTime = Annotated[str, Meta(pattern=r"(?:[Zz]|[+-]\d\d:\d\d)$")]  # msgspec accepts offsets without a colon
NO_OFFSET = "a time must end in Z or an offset like +01:00"

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_seed(text: str) -> int | None:
    """The seed in its only spelling as text, without a sign, zeros or spaces in front; None for any other text."""
    seed = int(text) if re.fullmatch(SEED_PATTERN, text) else None
    return seed if seed is None or seed <= U64_MAX else None


class Checked(Struct, frozen=True):
    """A shape that checks the upper bound of its U64 fields, and converts its times to UTC, when it is decoded."""

    def __post_init__(self) -> None:
        for name in _unbounded(type(self)):
            value = getattr(self, name)
            if type(value) is int:
                if value > U64_MAX:
                    raise ValueError(f"`{name}` must be at most {U64_MAX}")
            elif value is not None and value.tzinfo is not UTC:
                msgspec.structs.force_setattr(self, name, _utc(name, value))


@cache
def _unbounded(shape: type[Checked]) -> tuple[str, ...]:
    """The fields of `shape` that are a u64 or a time.

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


def _utc(name: str, value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"`{name}` lies outside of the years 1 to 9999") from None
