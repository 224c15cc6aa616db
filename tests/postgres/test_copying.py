"""COPY in a thread: one transaction, which a cancellation rolls back."""

import pytest
from twisted.internet.defer import CancelledError, Deferred

from solisync.errors import DatabaseError
from solisync.postgres.copying import copy
from tests.harness.concurrency import until
from tests.harness.postgres import run_sql


@pytest.fixture
def dsn(migrated_database):
    run_sql(migrated_database, "CREATE TABLE copied (name text, place int)")
    return migrated_database


async def test_copy_stores_any_text_and_null(reactor, dsn):
    """A backslash, a tab and the ends of lines have a meaning in COPY."""
    rows = [("a\\b", 1), ("a\tb", 2), ("a\nb\r", 3), ("\\N", 4), ("\\.", 5), ("", 6), (None, 7)]
    await copy(reactor, dsn, lambda copying: copying.copy("copied (name, place)", rows))
    assert run_sql(dsn, "SELECT name, place FROM copied ORDER BY place") == rows


async def test_cancelled_copy_stores_nothing(reactor, dsn):
    """The cancellation waits for the end of the transaction."""

    def work(copying):
        copying.copy("copied (name)", [("ann",)])
        copying.row("SELECT pg_sleep(600)")

    running = Deferred.fromCoroutine(copy(reactor, dsn, work))
    sleeps = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
    await until(reactor, lambda: run_sql(dsn, sleeps))
    running.cancel()
    with pytest.raises(CancelledError):
        await running
    assert run_sql(dsn, sleeps) == []
    assert run_sql(dsn, "SELECT name FROM copied") == []


async def test_failed_copy_stores_nothing(reactor, dsn):
    """The error is the server's primary message, without the rows."""

    def work(copying):
        copying.copy("copied (name)", [("ann",)])
        copying.copy("copied (place)", [("a secret",)])

    with pytest.raises(DatabaseError, match=r'^invalid input syntax for type integer: "a secret"$'):
        await copy(reactor, dsn, work)
    assert run_sql(dsn, "SELECT name FROM copied") == []
