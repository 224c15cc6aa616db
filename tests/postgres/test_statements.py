"""Every statement of storage/ and moving_in/ fits the schema, and declared statements run as functions."""

from importlib import import_module
from inspect import signature
from pkgutil import walk_packages

import psycopg2
import pytest

from solisync import moving_in, storage
from solisync.postgres import declared
from solisync.postgres.declared import statements_of
from solisync.postgres.statement import Query
from tests.harness.postgres import connect

STATEMENTS = {
    statement.name: statement
    for package in (moving_in, storage)
    for module in walk_packages(package.__path__, f"{package.__name__}.")
    for statement in statements_of(import_module(module.name))
}


def test_package_names_each_of_its_modules():
    """The statements of a module that the package doesn't name would not be prepared."""
    prefix = f"{storage.__name__}."
    modules = [each.name for each in walk_packages(storage.__path__, prefix) if not each.ispkg]
    assert list(storage.MODULES) == sorted(name.removeprefix(prefix) for name in modules)


def test_every_statement_can_be_prepared(server):
    """The statements of commands are included; LOCK TABLE is prepared without parameters, because it can't have any."""
    connection = connect(server.dsn)
    try:
        with connection.cursor() as cursor:
            for statement in STATEMENTS.values():
                if statement.sql.startswith("LOCK TABLE"):
                    cursor.execute(f"BEGIN; {statement.sql}; ROLLBACK")
                else:
                    cursor.execute(statement.preparation)
    finally:
        connection.close()


COUNTING = {"games_load": "EXECUTE games_load(NULL, NULL, NULL, 'games', 1, 1)"}
"""Queries that count a request, whose bucket must not be null."""


@pytest.fixture
def columns_of(server):
    """Return the names of a statement's columns, or None if it can't run with nulls; roll it back."""
    connection = psycopg2.connect(server.dsn)

    def ask(statement):
        with connection.cursor() as cursor:
            try:
                cursor.execute(statement.preparation)
                cursor.execute(COUNTING.get(statement.name, statement.execution.replace("%s", "NULL")))
            except (psycopg2.IntegrityError, psycopg2.errors.SerializationFailure):
                return None
            else:
                return [column.name for column in cursor.description or []]
            finally:
                connection.rollback()

    yield ask
    connection.close()


def test_columns_have_the_names_of_their_fields(columns_of):
    """A query returns what its `row` takes, in that order, so that no two columns of one type are exchanged."""
    queries = [statement for statement in STATEMENTS.values() if isinstance(statement, Query)]
    assert len(queries) > 30
    for query in queries:
        columns = columns_of(query)
        assert len(columns) == 1 or columns == list(signature(query.row).parameters), query.name


def test_rows_of_several_columns_have_a_shape(columns_of):
    """No storage function reads such rows by position."""
    wide = [statement for statement in STATEMENTS.values() if not isinstance(statement, Query)]
    assert not [
        statement.name
        for statement in wide
        if not statement.sql.startswith("LOCK TABLE") and len(columns_of(statement) or []) > 1
    ]


def test_statements_have_unique_names():
    """The service prepares them by their names."""
    names = [statement.name for statement in storage.EVERY]
    assert len(set(names)) == len(names)


class Sent:
    """A transaction that keeps the statements sent, and returns these rows."""

    def __init__(self, rows):
        self.rows = rows
        self.steps = []

    async def run(self, *steps):
        self.steps += steps
        return self.rows


@declared.many("SELECT $1::int, $2::int", row=lambda low, high: (low, high))
async def between(low, *, high=9):
    """Return two numbers."""


async def test_declared_statement_sends_parameters_in_order_of_signature():
    """Parameters given by name, and defaults, keep their places in the signature."""
    sent = Sent([(1, 2), (3, 4)])
    assert await between(sent, 1, high=2) == [(1, 2), (3, 4)]
    await between(sent, high=2, low=1)
    await between(sent, 1)
    statement = between.statement
    assert (statement.name, statement.prepared) == ("test_statements_between", True)
    assert sent.steps == [(statement, 1, 2), (statement, 1, 2), (statement, 1, 9)]
    assert between.call(1, high=2) == (statement, 1, 2)


@pytest.mark.parametrize(
    ("kind", "rows", "expected"),
    [
        ("one", [("a",)], "a"),
        ("maybe", [("a",)], "a"),
        ("maybe", [], None),
        ("many", [("a",), ("b",)], ["a", "b"]),
    ],
)
async def test_declared_query_returns_values_of_rows(kind, rows, expected):
    """A query returns one value, one or None, or a list."""

    async def letters():
        """Return letters."""

    assert await getattr(declared, kind)("SELECT 'a'", row=str)(letters)(Sent(rows)) == expected


@pytest.mark.parametrize("kind", ["one", "maybe"])
async def test_declared_query_of_one_row_refuses_two(kind):
    """A second row means that the statement is wrong."""

    async def letters():
        """Return letters."""

    with pytest.raises(ValueError):
        await getattr(declared, kind)("SELECT 'a'", row=str)(letters)(Sent([("a",), ("b",)]))


@pytest.mark.parametrize(("kind", "expected"), [("execute", None), ("count", 2), ("found", True)])
async def test_declared_statement_without_shape_ignores_values(kind, expected):
    """Only the number of rows may count."""

    async def letters():
        """Change rows."""

    assert await getattr(declared, kind)("SELECT 'a'")(letters)(Sent([("a",), ("b",)])) == expected
