"""Several processes under load: a reload or a stop drops no request, and all processes serve."""

import os
import signal
import time

import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.fire.load import REFUSED, Steady
from tests.harness.entry_points import SOLISYNC, start
from tests.harness.postgres import truncate
from tests.harness.processes import cpu_ticks, replaced, wait_until_ready, workers
from tests.harness.service import ready


async def test_rolling_restarts_drop_no_request(serve, reactor, shared_dsn, figure):
    """All workers are replaced, again and again, under 200 requests a second."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    player = await process.player()
    before = workers(process)
    load = Steady(process.port, bearers=[player.tokens.access_token])
    rounds = 5
    for done in range(rounds):
        await deferLater(reactor, 0.5)
        os.kill(process.pid, signal.SIGHUP)
        await deferToThread(replaced, process, done + 1)
    await deferLater(reactor, 0.5)
    outcomes = await deferToThread(load.stop)
    figure(f"{rounds} rolling restarts of 2 workers: {outcomes}, {len(load.cut)} cut")
    assert load.cut == []
    assert set(outcomes) == {200}
    assert len(workers(process)) == 2
    assert not before & workers(process)
    assert process.stop() == 0


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.short), 2])
async def test_sigterm_cuts_no_request(serve, reactor, shared_dsn, full, figure, count):
    """A service that is stopped under 200 requests a second answers each completely, or refuses the connection."""
    truncate(shared_dsn)
    for _ in range(3 if full else 1):
        process = await serve(shared_dsn, SOLISYNC_WORKERS=str(count))
        player = await process.player(f"ann_{process.port}")
        load = Steady(process.port, bearers=[player.tokens.access_token], closing=True)
        await deferLater(reactor, 1 if full else 0.5)
        assert await deferToThread(process.stop) == 0
        outcomes = await deferToThread(load.stop)
        figure(f"SIGTERM, {count} process(es): {outcomes}, {len(load.cut)} cut, {load.made_again} made again")
        assert load.cut == []
        assert load.made_again < 3
        assert set(outcomes) <= {200, REFUSED}
        assert outcomes[200] > 20


async def test_all_workers_serve(serve, reactor, shared_dsn):
    """Connections made together are shared out among the workers."""
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    await deferToThread(wait_until_ready, process, 2)

    def used():
        return {pid: cpu_ticks(pid) for pid in workers(process)}

    before = used()
    load = Steady(process.port, rate=400)
    await deferLater(reactor, 2)
    outcomes = await deferToThread(load.stop)
    assert set(outcomes) == {200}
    assert all(used()[pid] > ticks for pid, ticks in before.items())
    assert process.stop() == 0


async def test_embedded_database_has_connections_for_all_workers(launch, reactor, initialized, place):
    """Four workers have 30 connections each, and a fifth runs during a reload."""
    variables = {"SOLISYNC_DATABASE_CONNECTIONS": "30", "SOLISYNC_DATA_DIR": str(initialized(place / "data"))}
    process = start(launch, *SOLISYNC, "--workers", "4", **variables)
    await ready(reactor, process.client())
    await deferToThread(wait_until_ready, process, 4)
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(replaced, process)
    began = time.monotonic()
    await ready(reactor, process.client())
    assert time.monotonic() - began < 10
    assert "too many" not in process.log
    assert "no connection" not in process.log
    assert process.stop() == 0
