"""kill -9 under load: each acknowledged write is stored once, and no refresh token works twice."""

import os
import random
import signal

from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.fire.load import Crowd
from tests.fire.servers import is_back
from tests.harness.concurrency import wait_for
from tests.harness.processes import postmaster, workers
from tests.harness.service import ready

PLAYERS = 6


async def check(crowd, process, figure, what):
    """Stop the load; compare the memory of the players with the database."""
    acknowledged = await deferToThread(crowd.stop)
    for player in crowd.players:
        await deferToThread(player.check, process.port, process.sql)
    figure(f"{what}: {acknowledged} acknowledged answers of {len(crowd.players)} players, all right; {crowd.statuses}")
    assert acknowledged > 20


async def test_killing_services_loses_no_acknowledged_write(serve, reactor, durable, figure):
    """Workers and whole services are killed at any moment, and another takes over."""
    chance = random.Random(20261120)
    process = await serve(durable.dsn, SOLISYNC_WORKERS="2")
    current = [process]
    crowd = Crowd(lambda: [current[0].port], PLAYERS, seed=1)
    kills = 50
    try:
        for number in range(kills):
            await deferLater(reactor, chance.uniform(0.1, 0.5))
            if number % 2:
                current[0].stop(signal.SIGKILL)
                current[0] = await serve(durable.dsn, SOLISYNC_WORKERS="2")
            else:
                await deferToThread(wait_for, lambda: workers(current[0]))
                os.kill(chance.choice(sorted(workers(current[0]))), signal.SIGKILL)
        await check(crowd, current[0], figure, f"{kills} kill -9 of a worker or the whole service")
    finally:
        crowd.over.set()
    assert current[0].stop() == 0


async def test_killing_the_database_loses_no_acknowledged_write(serve, reactor, durable, figure):
    """PostgreSQL is killed at any moment, and comes back."""
    chance = random.Random(20261121)
    process = await serve(durable.dsn)
    crowd = Crowd(lambda: [process.port], PLAYERS, seed=2)
    kills = 20
    data = durable.data_dir

    try:
        for _ in range(kills):
            await deferLater(reactor, chance.uniform(0.3, 0.8))
            old = postmaster(data)
            os.kill(old, signal.SIGKILL)
            await deferToThread(wait_for, lambda old=old: is_back(durable, old))
        await ready(reactor, process.client())
        await check(crowd, process, figure, f"{kills} kill -9 of PostgreSQL")
    finally:
        crowd.over.set()
    assert process.stop() == 0
