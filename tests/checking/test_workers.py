"""One of several workers has the checkers of the node (docs/operations.md "Checking replays")."""

import os
import signal

import pytest
from twisted.internet.threads import deferToThread

from tests.checking.uploads import checked, checkers, game, upload
from tests.harness.concurrency import until
from tests.harness.postgres import truncate
from tests.harness.processes import alive, replaced, wait_until_ready, workers


def by_worker(process):
    """Return the checkers of each worker that has any."""
    return {worker: found for worker in workers(process) if (found := checkers(worker))}


@pytest.mark.long
async def test_one_worker_has_the_checkers(serve, reactor, shared_dsn):
    """When it dies, another worker gets them; a reload passes them to its successor. They end with the worker."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2", SOLISYNC_CHECKERS="1")
    await deferToThread(wait_until_ready, process, 2)
    ann = await process.player()
    await checked(reactor, process, await upload(process, ann, game()), seconds=120)
    ((first, found),) = by_worker(process).items()
    assert len(found) == 1
    os.kill(first, signal.SIGKILL)
    await deferToThread(wait_until_ready, process, 3)
    await until(reactor, lambda: [len(each) for each in by_worker(process).values()] == [1])
    await until(reactor, lambda: not any(map(alive, found)))
    assert first not in by_worker(process)
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(replaced, process)
    await until(reactor, lambda: [len(each) for each in by_worker(process).values()] == [1])
    await checked(reactor, process, await upload(process, ann, game(1)), seconds=120)
    left = set().union(*by_worker(process).values())
    assert process.stop() == 0
    assert not any(map(alive, left))
    assert "Traceback" not in process.log
