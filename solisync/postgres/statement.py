"""Named SQL statements, which storage/ declares and connections prepare and run."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

Row = tuple[Any, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Statement:
    """An SQL statement with parameters $1, $2, …, which the service prepares under its name on every connection.

    A statement that only commands and rare requests run isn't `prepared`: each connection of a service would keep its
    plan, and connections of commands prepare nothing.
    """

    name: str
    sql: str
    prepared: bool = True

    @cached_property
    def preparation(self) -> str:
        """The SQL that prepares this statement."""
        return f"PREPARE {self.name} AS {self.sql}"

    @cached_property
    def execution(self) -> str:
        """The SQL that executes the prepared statement, with one placeholder for each parameter."""
        count = max((int(number) for number in re.findall(r"\$(\d+)", self.sql)), default=0)
        return f"EXECUTE {self.name}({', '.join(['%s'] * count)})" if count else f"EXECUTE {self.name}"

    def inline(self, step: int) -> str:
        """The SQL with placeholders %(step.1)s, …, for connections on which the statement isn't prepared."""
        return re.sub(r"\$(\d+)", rf"%({step}.\1)s", self.sql.replace("%", "%%"))


@dataclass(frozen=True)
class Query(Statement, Generic[T]):
    """A statement with `row`, the function that makes a value from each row.

    The parameters of `row` have the names and the order of the columns. Only a single column may have another name.
    """

    row: Callable[..., T] = field(kw_only=True)

    def value(self, rows: list[Row]) -> T:
        """Return the only row as a value; raise ValueError for any other number of rows."""
        (row,) = rows
        return self.row(*row)

    def value_or_none(self, rows: list[Row]) -> T | None:
        """Return the only row as a value, or None if there is no row; raise ValueError for more rows."""
        return self.value(rows) if rows else None

    def values(self, rows: Iterable[Row]) -> list[T]:
        """Return all rows as values."""
        make = self.row
        return [make(*row) for row in rows]


Call = tuple[Statement, *tuple[object, ...]]  # a statement with its parameters
