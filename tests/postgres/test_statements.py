"""Every statement of storage/ fits the schema of this version: one that does not is left out when connections open."""

from importlib import import_module
from pkgutil import iter_modules

from solisync import storage
from solisync.postgres.statement import Statement
from tests.harness.postgres import connect

STATEMENTS = {
    value.name: value
    for module in iter_modules(storage.__path__)
    for value in vars(import_module(f"solisync.storage.{module.name}")).values()
    if isinstance(value, Statement)
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


def test_no_two_statements_have_one_name():
    """The service prepares them by their names."""
    names = [statement.name for statement in storage.STATEMENTS]
    assert len(set(names)) == len(names)


def test_what_the_service_runs_is_prepared():
    """No module of storage/ is missing in the list."""
    assert {s.name for s in storage.STATEMENTS} == {s.name for s in STATEMENTS.values() if s.prepared}
