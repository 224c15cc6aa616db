"""A database of notes on a real PostgreSQL, and pools of connections to it."""

import socket

import pytest
import pytest_twisted

from solisync.postgres import TIMES
from solisync.postgres.database import Database
from tests.harness.concurrency import wait_for
from tests.harness.postgres import run_sql
from tests.postgres.notes import SCHEMA, STATEMENTS, backends, started


@pytest.fixture(scope="module")
def notes_dsn(postgres):
    run_sql(postgres.dsn, "CREATE DATABASE notes")
    run_sql(postgres.dsn, "ALTER DATABASE notes SET deadlock_timeout = '20ms'")
    dsn = postgres.dsn.replace("dbname=postgres", "dbname=notes")
    run_sql(dsn, SCHEMA)
    yield dsn
    run_sql(postgres.dsn, "DROP DATABASE notes WITH (FORCE)")


@pytest.fixture
def dsn(notes_dsn):
    """A database without notes."""
    run_sql(notes_dsn, "TRUNCATE notes")
    return notes_dsn


@pytest.fixture
def make_database(reactor, dsn):
    """Open pools on the test's database; at the end each must close and leave no connection."""
    made = []

    def make(size=1, *, to=dsn, statements=STATEMENTS, times=TIMES):
        database = Database(reactor=reactor, size=size, statements=statements, times=times)
        database.open(to)
        made.append(database)
        return database

    yield make
    for database in made:
        pytest_twisted.blockon(started(database.close(1)))
    wait_for(lambda: not backends(dsn))


@pytest.fixture
def black_hole():
    """A TCP address that takes connections and never answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        yield f"host=127.0.0.1 port={silent.getsockname()[1]} user=solisync dbname=postgres"
