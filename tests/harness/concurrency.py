"""Work in several threads at once, and waiting for what sends no event."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor

from twisted.internet.defer import Deferred, DeferredSemaphore, gatherResults
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.harness.constants import PATIENCE


async def at_once(threads, job, items):
    """`job(item)` for every item, on this many threads; the results in the order of the items."""

    def run():
        with ThreadPoolExecutor(threads) as executor:
            return list(executor.map(job, items))

    return await deferToThread(run)


async def gather(width, send, items):
    """`await send(item)` for every item, so many at a time; the results in the order of the items."""
    gate = DeferredSemaphore(width)
    jobs = [gate.run(lambda item=item: Deferred.fromCoroutine(send(item))) for item in items]
    return await gatherResults(jobs, consumeErrors=True)


def then_a_new_turn(blockon):
    """`blockon` of pytest-twisted, after which its caller goes on in a new turn of the reactor.

    By itself it goes on in the callback of an event, while others that came with it are yet to be handled. The reactor
    knows those by their descriptors. If one of them is the end of a pipe that has just been closed, the next file of
    that number is closed for it: such as the port of the service that the next test starts.
    """

    @functools.wraps(blockon)
    def block(deferred):
        from twisted.internet import reactor

        return blockon(deferred.addBoth(lambda result: deferLater(reactor, 0, lambda: result)))

    return block


def wait_for(condition, seconds=PATIENCE):
    """Block until the condition holds, such as the end of a process that is not our child; return what it gave."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return result


async def until(reactor, condition, seconds=PATIENCE):
    """As `wait_for`, but the reactor runs on meanwhile."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        await deferLater(reactor, 0.01)
    return result
