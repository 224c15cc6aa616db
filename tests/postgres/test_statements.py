"""Every statement of storage/ and moving_in/ fits the schema: others are left out as connections open."""

from importlib import import_module
from inspect import signature
from pkgutil import iter_modules

import psycopg2
import pytest

from solisync import moving_in, storage
from solisync.postgres.declared import statements_of
from solisync.postgres.statement import Query
from tests.harness.postgres import connect

STATEMENTS = {
    statement.name: statement
    for package in (moving_in, storage)
    for module in iter_modules(package.__path__)
    for statement in statements_of(import_module(f"{package.__name__}.{module.name}"))
}


def test_every_statement_can_be_prepared(server):
    """Those of the service and those that only commands run; parameters of LOCK TABLE can't be, which has none."""
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


@pytest.fixture
def columns_of(server):
    """The names of a statement's columns; it is run with nulls and rolled back, and None when it can't be."""
    connection = psycopg2.connect(server.dsn)

    def ask(statement):
        with connection.cursor() as cursor:
            try:
                cursor.execute(statement.preparation)
                cursor.execute(statement.execution.replace("%s", "NULL"))
            except (psycopg2.IntegrityError, psycopg2.errors.SerializationFailure):
                return None
            else:
                return [column.name for column in cursor.description or []]
            finally:
                connection.rollback()

    yield ask
    connection.close()


def test_columns_have_the_names_of_what_they_fill(columns_of):
    """Each query returns what its `row` takes, in that order, so no two columns of one type are exchanged."""
    queries = [statement for statement in STATEMENTS.values() if isinstance(statement, Query)]
    assert len(queries) > 30
    for query in queries:
        columns = columns_of(query)
        assert len(columns) == 1 or columns == list(signature(query.row).parameters), query.name


def test_a_row_of_several_columns_has_a_shape(columns_of):
    """No storage function takes such rows apart by position."""
    wide = [statement for statement in STATEMENTS.values() if not isinstance(statement, Query)]
    assert not [
        statement.name
        for statement in wide
        if not statement.sql.startswith("LOCK TABLE") and len(columns_of(statement) or []) > 1
    ]


def test_no_two_statements_have_one_name():
    """The service prepares them by their names."""
    names = [statement.name for statement in storage.EVERY]
    assert len(set(names)) == len(names)
