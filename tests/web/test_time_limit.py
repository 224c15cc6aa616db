"""The time limit of handlers, whether or not their work can be cancelled."""

import pytest
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.task import Clock

from solisync.web.handler_limits import TimeLimit


@pytest.fixture
def clock():
    clock = Clock()
    yield clock
    clock.advance(100)
    assert not clock.getDelayedCalls()


class Bounded:
    """Work with a limit, and all its outcomes."""

    def __init__(self, limit, seconds=15, canceller=None):
        self.work, self.results, self.late = Deferred(canceller), [], []
        self.outcome = limit.bound(self.work, seconds, on_late=self.late.append)
        self.outcome.addCallbacks(self.results.append, lambda failure: self.results.append(failure.type))


def test_work_that_ends_in_time_keeps_its_outcome(clock):
    """The outcome is a result or a failure."""
    limit = TimeLimit(reactor=clock)
    good, bad = Bounded(limit), Bounded(limit)
    good.work.callback("reply")
    bad.work.errback(LookupError())
    clock.advance(20)
    assert (good.results, bad.results, good.late, bad.late) == (["reply"], [LookupError], [], [])


def test_each_work_has_its_own_deadline(clock):
    """Deadlines are exact with one timer, even if a later one is shorter."""
    limit = TimeLimit(reactor=clock)
    first = Bounded(limit)
    clock.advance(10)
    second, short = Bounded(limit), Bounded(limit, 0.5)
    assert len(clock.getDelayedCalls()) == 1
    clock.advance(0.5)
    assert (first.results, second.results, short.results) == ([], [], [TimeoutError])
    clock.advance(4.5)
    assert (first.results, second.results) == ([TimeoutError], [])
    clock.advance(9.9)
    assert second.results == []
    clock.advance(0.2)
    assert second.results == [TimeoutError]


def test_uncancellable_work_does_not_delay_the_timeout(clock):
    """Its result or failure is passed on."""
    limit = TimeLimit(reactor=clock)
    stubborn = [Bounded(limit) for _ in range(2)]
    for each in stubborn:
        each.work.cancel = lambda: None
    clock.advance(15)
    assert [each.results for each in stubborn] == [[TimeoutError]] * 2
    stubborn[0].work.callback("late")
    stubborn[1].work.errback(LookupError())
    assert [each.results for each in stubborn] == [[TimeoutError]] * 2
    assert stubborn[0].late == ["late"]
    assert [failure.type for failure in stubborn[1].late] == [LookupError]


def test_client_that_leaves_cancels_the_work(clock):
    """The outcome isn't a TimeoutError, and neither is the work's own failure at a timeout."""
    limit = TimeLimit(reactor=clock)
    gone = Bounded(limit)
    gone.outcome.cancel()
    assert (gone.results, gone.work.called) == ([CancelledError], True)
    other = Bounded(limit, canceller=lambda work: work.errback(LookupError()))
    clock.advance(15)
    assert other.results == [LookupError]
