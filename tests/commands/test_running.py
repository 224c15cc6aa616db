"""The database of a command, beside a running service or without one."""

import pytest
from twisted.internet.defer import Deferred, gatherResults

from solisync.commands import running
from solisync.embedded.data_directory import DataDirectory
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


async def test_command_stops_its_server_when_no_other_uses_it(reactor, initialized, place, monkeypatch):
    """A backup may be made beside an act, without a service."""
    settings = Settings.from_environ({"SOLISYNC_DATA_DIR": str(initialized(place / "data"))})
    stopping, stop = [], EmbeddedPostgres.stop
    waiting, hold = Deferred(), DataDirectory.hold_server

    def hold_noted(directory, *, alone):
        held = hold(directory, alone=alone)
        if held is None and not waiting.called:
            waiting.callback(None)
        return held

    async def stop_noted(server):
        stopping.append(server)
        await stop(server)

    async def use(entered, may_end, left):
        async with running.connection(settings, reactor) as connection:
            entered.callback(None)
            await may_end
            answer = await connection.execute("SELECT 1")
        left.callback(answer)

    monkeypatch.setattr(EmbeddedPostgres, "stop", stop_noted)
    monkeypatch.setattr(DataDirectory, "hold_server", hold_noted)
    begun, ends, begun_too, ends_too, left_too = (Deferred() for _ in range(5))
    first = Deferred.fromCoroutine(use(begun, ends, Deferred()))
    await begun
    second = Deferred.fromCoroutine(use(begun_too, ends_too, left_too))
    await begun_too
    ends.callback(None)
    await waiting
    assert stopping == []
    ends_too.callback(None)
    assert await left_too == [(1,)]
    await gatherResults([first, second])
    assert len(stopping) == 1


async def test_error_of_the_work_is_not_retried(reactor, shared_dsn):
    """Only opening the database is tried again."""
    settings = Settings.from_environ({"DATABASE_URL": shared_dsn})
    with pytest.raises(TransactionAborted, match="deadlock"):
        async with running.database(settings, reactor):
            raise TransactionAborted("deadlock")
