"""Work that outlives the cancellation of its caller."""

import pytest
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.task import Clock

from solisync.process.tasks import shielded


@pytest.fixture
def work():
    return Deferred()


def outcome_of(deferred):
    """Return the list that gets the result or failure."""
    results = []
    deferred.addBoth(results.append)
    return results


def test_result_of_the_work_is_passed_on(work):
    """The result stays in the work for others."""
    first, second = outcome_of(shielded(work)), outcome_of(shielded(work))
    work.callback("done")
    assert (first, second, outcome_of(work)) == (["done"], ["done"], ["done"])


def test_failure_of_the_work_is_passed_on(work):
    """The work has no unhandled error then."""
    results = outcome_of(shielded(work))
    work.errback(OSError("broken"))
    assert results[0].check(OSError)


def test_cancelling_leaves_the_work_running(work):
    """The caller gets its CancelledError immediately."""
    waiting = shielded(work)
    results = outcome_of(waiting)
    waiting.cancel()
    assert results[0].check(CancelledError)
    assert not work.called
    work.callback("done")
    assert outcome_of(work) == ["done"]


def test_timeout_leaves_the_work_running(work):
    """`addTimeout` ends only the waiting."""
    clock = Clock()
    results = outcome_of(shielded(work).addTimeout(5, clock))
    clock.advance(5)
    assert results[0].check(TimeoutError)
    assert not work.called


def test_canceller_can_end_the_work(work):
    """`canceller` is called when the caller is cancelled, and not after the work has ended."""
    calls = []
    waiting = shielded(work, canceller=lambda _: calls.append("cancelled"))
    results = outcome_of(waiting)
    waiting.cancel()
    work.callback("done")
    shielded(work, canceller=lambda _: calls.append("too late")).cancel()
    assert (calls, results[0].type) == (["cancelled"], CancelledError)


def test_late_failure_is_logged_once(work, no_lost_failures):
    """No caller waits for the work any more."""
    waiting = shielded(work)
    outcome_of(waiting)
    waiting.cancel()
    work.errback(OSError("broken"))
    (logged,) = no_lost_failures
    assert "broken" in logged
    no_lost_failures.clear()


def test_late_failure_goes_to_its_handler_instead_of_the_log(work):
    """The handler is `on_late_failure`."""
    failures = []
    waiting = shielded(work, on_late_failure=failures.append)
    outcome_of(waiting)
    waiting.cancel()
    work.errback(OSError("broken"))
    assert failures[0].check(OSError)
