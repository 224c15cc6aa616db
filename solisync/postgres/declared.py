"""SQL statements declared as functions: the decorator has the SQL, the signature names the parameters in order.

    @maybe("… FROM users WHERE id = $1::uuid", row=Profile)
    async def profile(user_id: str) -> Profile | None:
        \"""Return the profile of a player, or None if there is no such player.\"""

`await profile(statements, user_id)` runs the statement, and `profile.call(user_id)` is a step for `commit_with`. The
function has no body. The statement is prepared under the names of the module and the function: `accounts_profile`.
"""

from collections.abc import Callable, Iterator
from functools import partial, update_wrapper
from inspect import signature
from types import ModuleType
from typing import Generic, ParamSpec, TypeVar

from ..process.tasks import Task
from .statement import Call, Query, Row, Statement
from .transaction import Statements

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Declaration = Callable[P, Task[R]]


class DeclaredStatement(Generic[P, R]):
    """A function that runs its statement on its first argument, `statements`; `result` makes its value from rows."""

    def __init__(self, declaration: Declaration[P, R], statement: Statement, result: Callable[[list[Row]], R]) -> None:
        update_wrapper(self, declaration)
        self.statement = statement
        self._result = result
        self._defaults = {name: each.default for name, each in signature(declaration).parameters.items()}
        self._count = len(self._defaults)

    async def __call__(self, statements: Statements, *values: P.args, **named: P.kwargs) -> R:
        in_order = values if len(values) == self._count else self._in_order(values, named)
        return self._result(await statements.run((self.statement, *in_order)))

    def call(self, *values: P.args, **named: P.kwargs) -> Call:
        """The statement with its parameters, as a step of a transaction."""
        return (self.statement, *(values if len(values) == self._count else self._in_order(values, named)))

    def _in_order(self, values: tuple[object, ...], named: dict[str, object]) -> tuple[object, ...]:
        rest = list(self._defaults)[len(values) :]
        return (*values, *(named.get(name, self._defaults[name]) for name in rest))


def one(
    sql: str, *, row: Callable[..., T], prepared: bool = True
) -> Callable[[Declaration[P, T]], DeclaredStatement[P, T]]:
    """Declare a statement that returns one row, made into a value by `row`."""
    return lambda declaration: _declared_query(declaration, sql, row, prepared, Query.value)


def maybe(
    sql: str, *, row: Callable[..., T], prepared: bool = True
) -> Callable[[Declaration[P, T | None]], DeclaredStatement[P, T | None]]:
    """Declare a statement that returns one row, made into a value by `row`, or None if there is no row."""
    return lambda declaration: _declared_query(declaration, sql, row, prepared, Query.value_or_none)


def many(
    sql: str, *, row: Callable[..., T], prepared: bool = True
) -> Callable[[Declaration[P, list[T]]], DeclaredStatement[P, list[T]]]:
    """Declare a statement that returns any number of rows, each made into a value by `row`."""
    return lambda declaration: _declared_query(declaration, sql, row, prepared, Query.values)


def execute(sql: str, *, prepared: bool = True) -> Callable[[Declaration[P, None]], DeclaredStatement[P, None]]:
    """Declare a statement that returns nothing: its rows, if any, are ignored."""
    return lambda declaration: _declared(declaration, sql, prepared, lambda rows: None)


def count(sql: str, *, prepared: bool = True) -> Callable[[Declaration[P, int]], DeclaredStatement[P, int]]:
    """Declare a statement that returns the number of its rows."""
    return lambda declaration: _declared(declaration, sql, prepared, len)


def found(sql: str, *, prepared: bool = True) -> Callable[[Declaration[P, bool]], DeclaredStatement[P, bool]]:
    """Declare a statement that returns whether there is any row."""
    return lambda declaration: _declared(declaration, sql, prepared, bool)


def statements_of(module: ModuleType) -> Iterator[Statement]:
    """Yield the statements of a module, whether declared as functions or not."""
    for value in vars(module).values():
        statement = value.statement if isinstance(value, DeclaredStatement) else value
        if isinstance(statement, Statement):
            yield statement


def _declared_query(
    declaration: Declaration[P, R],
    sql: str,
    row: Callable[..., T],
    prepared: bool,
    result: Callable[[Query[T], list[Row]], R],
) -> DeclaredStatement[P, R]:
    query = Query(_name(declaration), sql, prepared, row=row)
    return DeclaredStatement(declaration, query, partial(result, query))


def _declared(
    declaration: Declaration[P, R], sql: str, prepared: bool, result: Callable[[list[Row]], R]
) -> DeclaredStatement[P, R]:
    return DeclaredStatement(declaration, Statement(_name(declaration), sql, prepared), result)


def _name(declaration: Callable[..., object]) -> str:
    return f"{declaration.__module__.rpartition('.')[2]}_{declaration.__name__}"
