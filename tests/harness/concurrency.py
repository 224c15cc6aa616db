"""Running jobs at the same time, and waiting for conditions that send no event."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor

from twisted.internet.defer import Deferred, DeferredSemaphore, gatherResults
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.harness.constants import PATIENCE


async def at_once(threads, job, items):
    """Run `job(item)` for every item on this many threads; return the results in the order of the items."""

    def run():
        with ThreadPoolExecutor(threads) as executor:
            return list(executor.map(job, items))

    return await deferToThread(run)


async def gather(width, send, items):
    """Run `await send(item)` for every item, this many at a time; return the results in the order of the items."""
    gate = DeferredSemaphore(width)
    jobs = [gate.run(lambda item=item: Deferred.fromCoroutine(send(item))) for item in items]
    return await gatherResults(jobs, consumeErrors=True)


def then_a_new_turn(blockon):
    """Wrap pytest-twisted's `blockon` so that its caller continues in a new turn of the reactor.

    The original continues inside the callback of an event, while other events of the same turn are still to be handled.
    The reactor knows those by their descriptors. One of them may be the end of a pipe that was just closed. Then the
    next file with that number would be closed instead, such as the port of the next test's service.
    """

    @functools.wraps(blockon)
    def block(deferred):
        from twisted.internet import reactor

        return blockon(deferred.addBoth(lambda result: deferLater(reactor, 0, lambda: result)))

    return block


def wait_for(condition, seconds=PATIENCE):
    """Block until the condition holds, such as the end of a process that isn't our child; return its value."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return result


async def until(reactor, condition, seconds=PATIENCE):
    """Wait like `wait_for`, without blocking the reactor."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        await deferLater(reactor, 0.01)
    return result
