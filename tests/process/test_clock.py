"""Timers and a wall clock that steps: the clock of the service alone, not its database's."""

import os
import signal
import time
from contextlib import closing

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater

from solisync.client import ApiError
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD, ROOT
from tests.harness.entry_points import MODULE, SOLISYNC, TAC, TWISTD, start
from tests.harness.postgres import connect, lock_waiters
from tests.harness.processes import postmaster
from tests.harness.service import ready

HEAL_SECONDS = 2.0
HOUR = 3600
DOORS = {
    "solisync": SOLISYNC,
    "python -m": MODULE,
    "twistd -n": TWISTD,
    "twistd -ny": TAC,
    "twistd --reactor=asyncio": (TWISTD[0], "--reactor=asyncio", *TWISTD[1:]),
    "workers": (*SOLISYNC, "--workers=2"),
}


class SteppedClock:
    """The wall clock of processes that are started with `variables`."""

    def __init__(self, file):
        self._file = file
        self.variables = {"PYTHONPATH": ROOT / "tests" / "harness" / "stepped_clock", "STEPPED_CLOCK": file}
        self.step(0)

    def step(self, seconds):
        """Set the clock to this number of seconds off the right time."""
        unfinished = self._file.with_suffix(".new")
        unfinished.write_text(str(seconds))
        unfinished.rename(self._file)


@pytest.fixture
def clock(place):
    return SteppedClock(place / "clock")


@pytest.mark.parametrize(
    "door",
    [pytest.param(door, id=name, marks=() if name == "workers" else pytest.mark.long) for name, door in DOORS.items()],
)
async def test_step_of_the_clock_delays_no_reconnect(reactor, launch, initialized, place, clock, door):
    """A database restarts beside a step back or forth. The service soon uses it again, at every entry point."""
    data_dir = initialized(place / "data")
    service = start(launch, *door, data_dir=data_dir, **clock.variables)
    client = service.client()
    await ready(reactor, client)
    await client.register("ann", PASSWORD)
    for seconds in (-HOUR, HOUR):
        old = postmaster(data_dir)
        os.kill(old, signal.SIGQUIT)
        clock.step(seconds)
        await until(reactor, lambda old=old: postmaster(data_dir) not in (old, None), 10 * HEAL_SECONDS)
        began = time.monotonic()
        while (await service.ask("GET", "/api/me", bearer=client.tokens.access_token)).status != 200:
            assert time.monotonic() < began + 10 * HEAL_SECONDS
            await deferLater(reactor, 0.05)
        print(f"{seconds:+d} s: {time.monotonic() - began:.2f} s")


async def test_step_forward_fails_no_request(reactor, serve, migrated_database, clock):
    """Requests that run while the clock goes forward by an hour end as usual."""
    service = await serve(migrated_database, **clock.variables)
    clients = [await service.player(f"ann_{number}") for number in range(4)]
    with closing(connect(migrated_database)) as locking:
        locking.autocommit = False
        locking.cursor().execute("SELECT FROM users FOR UPDATE")
        logins = [
            Deferred.fromCoroutine(client.login(f"ann_{number}", PASSWORD)) for number, client in enumerate(clients)
        ]
        await until(reactor, lambda: len(lock_waiters(migrated_database)) == 4)
        clock.step(HOUR)
        await deferLater(reactor, 0.5)  # the deadline of a request would be noticed in this time
    await gatherResults(logins)


async def test_step_back_keeps_deadlines(reactor, serve, migrated_database, clock):
    """A request that waits for a connection while the clock goes back by an hour is declined at its deadline."""
    service = await serve(migrated_database, SOLISYNC_DATABASE_CONNECTIONS=1, **clock.variables)
    client = await service.player("ann")
    with closing(connect(migrated_database)) as locking:
        locking.autocommit = False
        locking.cursor().execute("SELECT FROM users FOR UPDATE")
        first = Deferred.fromCoroutine(client.login("ann", PASSWORD))
        await until(reactor, lambda: lock_waiters(migrated_database))
        second = Deferred.fromCoroutine(client.me())
        await deferLater(reactor, 0.2)
        clock.step(-HOUR)
        with pytest.raises(ApiError) as declined:
            await second
        assert (declined.value.status, first.called) == (503, False)
    await first
