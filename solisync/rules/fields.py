"""Field types of several message shapes: integers with exact ranges, and times."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1

U32 = Annotated[int, Meta(ge=0, le=U32_MAX, examples=[7])]
# msgspec's own bounds end at int64, so `Checked` checks the upper one
U64 = Annotated[int, Meta(ge=0, extra_json_schema={"maximum": U64_MAX, "format": "uint64"}, examples=[120])]
Time = Annotated[datetime, Meta(tz=True)]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Checked(Struct, frozen=True):
    """A shape that checks the upper bound of its U64 fields, and converts its times to UTC, when it is decoded."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is int and value > U64_MAX:
                raise ValueError(f"`{name}` must be at most {U64_MAX}")
            if isinstance(value, datetime) and value.tzinfo is not UTC:
                msgspec.structs.force_setattr(self, name, _utc(name, value))


def _utc(name: str, value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"`{name}` lies outside of the years 1 to 9999") from None
