"""Functions that build values from the columns of rows, and parameters of queries."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct

from ..postgres.statement import Row

T = TypeVar("T")


def columns(shape: type[Struct], **names: str) -> str:
    """SQL for the columns of the fields of `shape`; those of `names` are called otherwise in the table."""
    return ", ".join(f"{names[each]} AS {each}" if each in names else each for each in shape.__struct_fields__)


def converted(shape: Callable[..., T], **converters: Callable[[Any], object]) -> Callable[..., T]:
    """Return `shape` with the named columns converted first; NULL stays None."""
    names = list(signature(shape).parameters)
    places = [(names.index(name), convert) for name, convert in converters.items()]

    @wraps(shape, updated=())
    def make(*columns: Any) -> T:
        values = list(columns)
        for place, convert in places:
            if values[place] is not None:
                values[place] = convert(values[place])
        return shape(*values)

    return make


def nested(make: Callable[..., T], *shapes: Callable[..., object]) -> Callable[..., T]:
    """Return a function that passes the columns of a row to `shapes`, in order, and their values to `make`."""
    columns_of = [list(signature(shape).parameters.values()) for shape in shapes]

    def made(*columns: Any) -> T:
        rest = iter(columns)
        return make(*(shape(*islice(rest, len(names))) for shape, names in zip(shapes, columns_of, strict=True)))

    columns = [each.replace(default=Parameter.empty) for shape in columns_of for each in shape]
    made.__signature__ = Signature(columns)  # type: ignore[attr-defined]
    return made


def optional(shape: Callable[..., T]) -> Callable[..., T | None]:
    """Return `shape`, except that the result is None if the first column is NULL."""

    @wraps(shape, updated=())
    def make(*columns: Any) -> T | None:
        return None if columns[0] is None else shape(*columns)

    return make


def id_set(rows: Iterable[Row]) -> set[str]:
    """The ids in rows of one column."""
    return {row_id for (row_id,) in rows}


def encoded(text: str | None) -> bytes | None:
    """A text column as UTF-8; NULL stays None."""
    return None if text is None else text.encode()


def number(value: int | None) -> str | None:
    """A number as text, for a text array: the driver can also put NULL into it."""
    return None if value is None else str(value)
