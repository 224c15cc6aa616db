"""Named SQL statements: written in storage/, prepared and run by connections."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

Row = tuple[Any, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Statement:
    """An SQL statement with parameters $1, $2, …, which the service prepares by its name on every connection.

    A statement that only commands run is not `prepared`: they use connections that prepare nothing.
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
        """The whole statement with placeholders %(step.1)s, …, for connections on which it is not prepared."""
        return re.sub(r"\$(\d+)", rf"%({step}.\1)s", self.sql.replace("%", "%%"))


@dataclass(frozen=True)
class Query(Statement, Generic[T]):
    """A statement with the function that makes a value of each of its rows.

    The parameters of `row` are named as the columns are, in the same order. Only a single column may have another name.
    """

    row: Callable[..., T] = field(kw_only=True)

    def value(self, rows: list[Row]) -> T:
        """The only row, made into a value; raises ValueError for any other number of rows."""
        (row,) = rows
        return self.row(*row)

    def value_or_none(self, rows: list[Row]) -> T | None:
        """The only row, made into a value, or None without a row; raises ValueError for more rows."""
        return self.value(rows) if rows else None

    def values(self, rows: Iterable[Row]) -> list[T]:
        """Every row made into a value."""
        make = self.row
        return [make(*row) for row in rows]


Call = tuple[Statement, *tuple[object, ...]]  # a statement with its parameters
