"""How many rows a storage function expects: exactly one, at most one, or any number."""

from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from ..postgres.statement import Row

T = TypeVar("T")
P = ParamSpec("P")


def one(make: Callable[..., T], rows: list[Row]) -> T:
    """The only row, made into a value; raises ValueError for any other number of rows."""
    (row,) = rows
    return make(*row)


def maybe(make: Callable[..., T], rows: list[Row]) -> T | None:
    """The only row made into a value, or None when there is none; raises ValueError for more."""
    return one(make, rows) if rows else None


def many(make: Callable[..., T], rows: Iterable[Row]) -> list[T]:
    """Every row made into a value."""
    return [make(*row) for row in rows]
