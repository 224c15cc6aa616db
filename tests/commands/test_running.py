"""The database of a command, beside a running service or without one."""

import pytest
from twisted.internet.defer import Deferred

from solisync.commands import running
from solisync.embedded.server import EmbeddedPostgres
from solisync.errors import TransactionAborted
from solisync.settings.settings import Settings


async def test_command_waits_for_a_server_that_is_starting(reactor, initialized, place):
    """While another process holds the data directory, the command tries again to connect."""
    server = EmbeddedPostgres(reactor=reactor, data_dir=initialized(place / "data"))
    server.claim()
    settings = Settings.from_environ({"SOLISYNC_DATA_DIR": str(server.data_dir)})

    async def ask():
        async with running.connection(settings, reactor) as connection:
            return await connection.execute("SELECT 1")

    asking = Deferred.fromCoroutine(ask())
    try:
        await server.start()
        assert await asking == [(1,)]
    finally:
        await server.stop()


async def test_error_of_the_work_is_not_retried(reactor, shared_dsn):
    """Only opening the database is tried again."""
    settings = Settings.from_environ({"DATABASE_URL": shared_dsn})
    with pytest.raises(TransactionAborted, match="deadlock"):
        async with running.database(settings, reactor):
            raise TransactionAborted("deadlock")
