"""Work that outlives the cancellation of its caller."""

import pytest
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.task import Clock

from solisync.process.shielded import shielded


@pytest.fixture
def work():
    return Deferred()


def outcome_of(deferred):
    """The list that gets the result or failure."""
    results = []
    deferred.addBoth(results.append)
    return results


def test_the_outcome_is_that_of_the_work(work):
    """A result is passed on, and stays in the work for others."""
    first, second = outcome_of(shielded(work)), outcome_of(shielded(work))
    work.callback("done")
    assert (first, second, outcome_of(work)) == (["done"], ["done"], ["done"])


def test_a_failure_is_passed_on(work):
    """The caller gets the failure, so it is no unhandled error of the work."""
    results = outcome_of(shielded(work))
    work.errback(OSError("broken"))
    assert results[0].check(OSError)


def test_cancelling_leaves_the_work_running(work):
    """The caller gets its CancelledError at once, the work ends when it ends."""
    waiting = shielded(work)
    results = outcome_of(waiting)
    waiting.cancel()
    assert results[0].check(CancelledError)
    assert not work.called
    work.callback("done")
    assert outcome_of(work) == ["done"]


def test_a_timeout_leaves_the_work_running(work):
    """`addTimeout` ends the waiting, not the work."""
    clock = Clock()
    results = outcome_of(shielded(work).addTimeout(5, clock))
    clock.advance(5)
    assert results[0].check(TimeoutError)
    assert not work.called


def test_the_work_may_be_asked_to_end(work):
    """`canceller` is called when the caller is cancelled, and not when the work has ended."""
    calls = []
    waiting = shielded(work, canceller=lambda _: calls.append("cancelled"))
    results = outcome_of(waiting)
    waiting.cancel()
    work.callback("done")
    shielded(work, canceller=lambda _: calls.append("too late")).cancel()
    assert (calls, results[0].type) == (["cancelled"], CancelledError)


def test_a_late_failure_is_logged(work, no_lost_failures):
    """A failure that no caller waits for any more is in the log, once."""
    waiting = shielded(work)
    outcome_of(waiting)
    waiting.cancel()
    work.errback(OSError("broken"))
    (logged,) = no_lost_failures
    assert "broken" in logged
    no_lost_failures.clear()


def test_somebody_else_may_take_late_failures(work):
    """`on_late_failure` gets them instead of the log."""
    failures = []
    waiting = shielded(work, on_late_failure=failures.append)
    outcome_of(waiting)
    waiting.cancel()
    work.errback(OSError("broken"))
    assert failures[0].check(OSError)
