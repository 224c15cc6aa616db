"""A service that checks replays, for one test, on the database that most tests share."""

import pytest
import pytest_twisted

from solisync.checking.queue_worker import Checking, QueueTimes
from tests.harness.entry_points import CHECKER
from tests.harness.postgres import truncate
from tests.harness.service import start


@pytest.fixture
def checking(reactor, shared_dsn, monkeypatch):
    """Start such a service, with one checker and short times by default; it is stopped after the test."""
    monkeypatch.setitem(Checking.__init__.__kwdefaults__, "command", CHECKER)
    running = []

    async def checking(checkers=1, times=None, **settings):
        if times is not None:
            monkeypatch.setitem(Checking.__init__.__kwdefaults__, "times", QueueTimes(**times))
        if not running:
            truncate(shared_dsn)
        running.append(await start(reactor, shared_dsn, settings={"SOLISYNC_CHECKERS": str(checkers), **settings}))
        return running[-1]

    yield checking
    for each in running:
        if each.service.running:
            pytest_twisted.blockon(each.service.stopService())
