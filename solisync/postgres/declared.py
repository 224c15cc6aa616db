"""SQL statements that are declared as functions: the decorator has the SQL, the signature its parameters in order.

    @maybe("… FROM users WHERE id = $1::uuid", row=Profile)
    async def profile(user_id: str) -> Profile | None:
        \"""Return the profile of a player, or None if there is no such player.\"""

`await profile(statements, user_id)` runs the statement, and `profile.call(user_id)` is a step for `commit_with`. The
function has no body. The statement is prepared under the names of the module and the function: `accounts_profile`.
"""

from collections.abc import Callable, Coroutine, Iterator
from functools import update_wrapper
from inspect import signature
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

from .statement import Call, Query, Statement
from .transaction import Statements

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Declaration = Callable[P, Coroutine[Any, Any, R]]


class DeclaredStatement(Generic[P, R]):
    """A function that runs its statement on the connection of its first argument."""

    def __init__(self, declaration: Declaration[P, R], statement: Statement, run: Callable[..., Any]) -> None:
        update_wrapper(self, declaration)
        self.statement = statement
        self._run = run
        self._defaults = {name: each.default for name, each in signature(declaration).parameters.items()}

    def __call__(self, statements: Statements, *values: P.args, **named: P.kwargs) -> Coroutine[Any, Any, R]:
        coroutine: Coroutine[Any, Any, R] = self._run(statements, self.statement, *self._in_order(values, named))
        return coroutine

    def call(self, *values: P.args, **named: P.kwargs) -> Call:
        """The statement with its parameters, as a step of a transaction."""
        return (self.statement, *self._in_order(values, named))

    def _in_order(self, values: tuple[object, ...], named: dict[str, object]) -> tuple[object, ...]:
        if len(values) == len(self._defaults):
            return values
        rest = list(self._defaults)[len(values) :]
        return (*values, *(named.get(name, self._defaults[name]) for name in rest))


def one(
    sql: str, *, row: Callable[..., T], prepared: bool = True
) -> Callable[[Declaration[P, T]], DeclaredStatement[P, T]]:
    """Declare a statement that returns one row, made into a value by `row`."""
    return lambda declaration: DeclaredStatement(declaration, _query(declaration, sql, row, prepared), Statements.one)


def maybe(
    sql: str, *, row: Callable[..., T], prepared: bool = True
) -> Callable[[Declaration[P, T | None]], DeclaredStatement[P, T | None]]:
    """Declare a statement that returns one row, made into a value by `row`, or no row, which is None."""
    return lambda declaration: DeclaredStatement(declaration, _query(declaration, sql, row, prepared), Statements.maybe)


def many(
    sql: str, *, row: Callable[..., T], prepared: bool = True
) -> Callable[[Declaration[P, list[T]]], DeclaredStatement[P, list[T]]]:
    """Declare a statement that returns any number of rows, each made into a value by `row`."""
    return lambda declaration: DeclaredStatement(declaration, _query(declaration, sql, row, prepared), Statements.many)


def execute(sql: str, *, prepared: bool = True) -> Callable[[Declaration[P, None]], DeclaredStatement[P, None]]:
    """Declare a statement whose rows, if any, are of no use."""
    return lambda declaration: DeclaredStatement(declaration, Statement(_name(declaration), sql, prepared), _nothing)


def count(sql: str, *, prepared: bool = True) -> Callable[[Declaration[P, int]], DeclaredStatement[P, int]]:
    """Declare a statement of which only the number of its rows counts."""
    return lambda declaration: DeclaredStatement(declaration, Statement(_name(declaration), sql, prepared), _count)


def found(sql: str, *, prepared: bool = True) -> Callable[[Declaration[P, bool]], DeclaredStatement[P, bool]]:
    """Declare a statement of which only matters whether it returns a row."""
    return lambda declaration: DeclaredStatement(declaration, Statement(_name(declaration), sql, prepared), _found)


def statements_of(module: ModuleType) -> Iterator[Statement]:
    """The statements of a module, declared as functions or not."""
    for value in vars(module).values():
        statement = value.statement if isinstance(value, DeclaredStatement) else value
        if isinstance(statement, Statement):
            yield statement


def _query(declaration: Callable[..., object], sql: str, row: Callable[..., T], prepared: bool) -> Query[T]:
    return Query(_name(declaration), sql, prepared, row=row)


def _name(declaration: Callable[..., object]) -> str:
    return f"{declaration.__module__.rpartition('.')[2]}_{declaration.__name__}"


async def _nothing(statements: Statements, statement: Statement, *values: object) -> None:
    await statements.run(statement, *values)


async def _count(statements: Statements, statement: Statement, *values: object) -> int:
    return len(await statements.run(statement, *values))


async def _found(statements: Statements, statement: Statement, *values: object) -> bool:
    return bool(await statements.run(statement, *values))
