"""Rows made into values, by how many rows a statement returns: exactly one, at most one, or any number."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..postgres.statement import Row

T = TypeVar("T")


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


def encoded(text: str | None) -> bytes | None:
    """A column of type text as UTF-8; NULL stays None."""
    return None if text is None else text.encode()
