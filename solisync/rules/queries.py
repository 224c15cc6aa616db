"""Parameters of queries: how a query becomes a Struct, and the positions in lists.

A query is a frozen Struct. Each parameter may occur once, or as often as its list allows.

A position is opaque text. It encodes the order and the id of the last row shown, and so stays valid if that row is
deleted. Its bytes, in base64url (RFC 4648 §5), are integers, then 8 bytes of microseconds since 1970, signed and
big-endian, then the 16 bytes of the UUID. So each position has one spelling.
"""

import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints
from uuid import UUID

import msgspec
from msgspec import Meta, Struct, inspect

from ..errors import BadRequest
from . import shapes
from .controls import has_controls
from .shapes import EPOCH

T = TypeVar("T")
Q = TypeVar("Q", bound=Struct)

_BOUNDED = re.compile(r"0|[1-9]\d*", re.ASCII)
_DIGITS = re.compile(r"\d+", re.ASCII)
_DIGITS_MAX = 20  # more than any bound has
_FLAGS = {"true": True, "false": False}
_MICROSECOND = timedelta(microseconds=1)

EARLIER = "what an earlier page gave as next"
A_MOMENT = "a date or a time, like 2026-11-20 or 2026-11-20T12:00:00Z"

PositionText = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9_-]{32}$",
        description="`next` of the previous page; absent for the first page",
        extra={"is": EARLIER},
    ),
]

PageText = Annotated[
    str,
    Meta(
        pattern="^([A-Za-z0-9_-]{32})?$",
        description="`next` of the previous page; empty for the first page",
        extra={"is": EARLIER},
    ),
]


def read_query(shape: type[Q], values: Callable[[str], list[str]]) -> Q:
    """Read a query, given a function that returns all values of a parameter; raises BadRequest."""
    given: dict[str, Any] = {}
    for name, kind in _kinds(shape):
        texts = values(name)
        if not texts:
            continue
        several = isinstance(_bare(kind), inspect.ListType)
        if any(map(has_controls, texts)) or (len(texts) > 1 and not several):
            raise _refused(name, kind)
        given[name] = texts if several else _value(texts[0], _bare(kind))
    try:
        return msgspec.convert(given, shape)
    except msgspec.ValidationError as error:
        name = str(error).partition("`$.")[2].partition("[")[0].removesuffix("`")
        raise _refused(name, dict(_kinds(shape))[name]) from None


def parameters_of(shape: type[Struct]) -> dict[str, Any]:
    """The parameters of a query, each with its type, for its description."""
    hints = get_type_hints(shape, include_extras=True)
    names = zip(shape.__struct_encode_fields__, shape.__struct_fields__, strict=True)
    return {name: _given(hints[field]) for name, field in names}


def _given(hint: Any) -> Any:
    """The type of a parameter that is there: a default of None means that it may be absent."""
    (given,) = [each for each in get_args(hint) if each is not type(None)] if type(None) in get_args(hint) else [hint]
    return given


@cache
def _kinds(shape: type[Struct]) -> tuple[tuple[str, inspect.Type], ...]:
    return tuple((name, inspect.type_info(hint)) for name, hint in parameters_of(shape).items())


def _bare(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _value(text: str, kind: inspect.Type) -> Any:
    """The value that a text spells. A text that is no number or flag stays one, which the shape then refuses."""
    match kind:
        case inspect.IntType(le=most):
            spelled = (_DIGITS if most is None else _BOUNDED).fullmatch(text)
            return int(text.lstrip("0")[:_DIGITS_MAX] or 0) if spelled else text
        case inspect.BoolType():
            return _FLAGS.get(text, text)
    return text


def _refused(name: str, kind: inspect.Type) -> BadRequest:
    return BadRequest("bad_query", f"{name} must be {_expected(kind)}")


def _expected(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(type=inner, extra=extra):
            return extra["is"] if extra else _expected(inner)
        case inspect.IntType(ge=least, le=most):
            return "a whole number" + ("" if most is None else f" from {least} to {most}")
        case inspect.LiteralType(values=choices):
            return f"{'one of ' * (len(choices) > 1)}{', '.join(map(str, choices))}"
        case inspect.BoolType():
            return "one of true, false"
        case inspect.StrType(max_length=most):
            return "one text" + ("" if most is None else f" of at most {most} characters")
    raise TypeError(f"no parameter of a query is of the type {kind}")


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


def position_of(text: str | None, name: str, make: Callable[..., T], integers: str = "") -> T | None:
    """Decode a position by `make`; None for the first page. Raises BadRequest if the text isn't a position."""
    if text is None:
        return None
    with suppress(ValueError, OverflowError, struct.error):  # wrong base64 or length, or after the year 9999
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        *numbers, microseconds, uuid = struct.unpack(f">{integers}q16s", packed)
        order = (*numbers, EPOCH + timedelta(microseconds=microseconds), str(UUID(bytes=uuid)))
        if position_text(integers, *order) == text:
            return make(*order)
    raise BadRequest("bad_query", f"{name} must be {EARLIER}")


def read_position(text: str | None, name: str) -> ListPosition | None:
    """The position in the query; None for the first page. Raises BadRequest for any other text."""
    return position_of(text, name, ListPosition)


def moment(text: str | None, name: str) -> datetime | None:
    """The time in a parameter, or None without one; raises BadRequest for any other text."""
    if text is None:
        return None
    found = shapes.moment(text)
    if found is None:
        raise BadRequest("bad_query", f"{name} must be {A_MOMENT}")
    return found
