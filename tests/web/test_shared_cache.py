"""Lists that are remembered for a second, loaded once for simultaneous requests, and ended by each change.

Source: docs/protocol.md "The leaderboard".
"""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from solisync.web.shared_cache import SECONDS, CoalescingCache


class Source:
    """The source of the remembered values: the test decides when each loading ends."""

    def __init__(self):
        self.loadings = []

    async def load(self):
        loading = Deferred()
        self.loadings.append(loading)
        return await loading


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def remembered(source, clock):
    clock.advance(1_000)
    return CoalescingCache(source.load, reactor=clock)


def get(remembered):
    """Ask for the value; the list gets the value or the failure."""
    results = []
    deferred = Deferred.fromCoroutine(remembered.get())
    deferred.addBoth(results.append)
    return deferred, results


def test_each_variant_is_loaded_and_remembered_separately(source, clock):
    """A change on this node ends all variants."""
    wanted = []

    async def load(variant):
        wanted.append(variant)
        return await source.load()

    remembered = CoalescingCache(load, reactor=clock)
    asked = {variant: [Deferred.fromCoroutine(remembered.get(variant)) for _ in range(3)] for variant in (True, False)}
    assert wanted == [True, False]
    for loading, value in zip(source.loadings, ("some", "all"), strict=True):
        loading.callback(value)
    assert {variant: [each.result for each in every] for variant, every in asked.items()} == {
        True: ["some"] * 3,
        False: ["all"] * 3,
    }
    remembered.invalidate()
    for variant in (True, False):
        Deferred.fromCoroutine(remembered.get(variant))
    assert wanted == [True, False] * 2


def test_simultaneous_requests_share_one_loading(remembered, source, clock):
    """The remembered value is too old, so one loading gives all requests a new one."""
    for turn in (1, 2):
        crowd = [get(remembered) for _ in range(100)]
        assert len(source.loadings) == turn
        source.loadings[-1].callback(turn)
        assert [results for _, results in crowd] == [[turn]] * 100
        clock.advance(SECONDS)


def test_value_is_at_most_a_second_old(remembered, source, clock):
    """The second begins with the loading, because the database may read right then."""
    get(remembered)
    clock.advance(0.4)
    source.loadings[0].callback("first")
    clock.advance(SECONDS - 0.41)
    assert get(remembered)[1] == ["first"]
    clock.advance(0.01)
    assert get(remembered)[1] == []
    assert len(source.loadings) == 2


def test_request_does_not_join_a_loading_older_than_a_second(remembered, source, clock):
    """The request begins another loading, whose value is remembered even if it ends first."""
    _, early = get(remembered)
    clock.advance(SECONDS)
    _, late = get(remembered)
    source.loadings[1].callback("new")
    source.loadings[0].callback("old")
    assert (early, late, get(remembered)[1]) == (["old"], ["new"], ["new"])


def test_request_after_a_change_sees_it(remembered, source):
    """A loading that began before the change serves only requests from before, and isn't remembered."""
    _, before = get(remembered)
    remembered.invalidate()
    _, after = get(remembered)
    assert len(source.loadings) == 2
    source.loadings[1].callback("changed")
    source.loadings[0].callback("as it was")
    assert (before, after, get(remembered)[1]) == (["as it was"], ["changed"], ["changed"])
    remembered.invalidate()
    assert get(remembered)[1] == []


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_hang_up_leaves_other_requests_waiting(remembered, source, gone):
    """Whichever client leaves, the other requests get the value of the same loading."""
    crowd = [get(remembered) for _ in range(3)]
    crowd[gone][0].cancel()
    assert crowd[gone][1][0].check(CancelledError)
    source.loadings[0].callback("value")
    assert [results for n, (_, results) in enumerate(crowd) if n != gone] == [["value"]] * 2
    assert len(source.loadings) == 1


def test_failure_of_an_abandoned_loading_is_ignored(remembered, source):
    """The next request loads again."""
    get(remembered)[0].cancel()
    source.loadings[0].errback(OSError("gone"))
    get(remembered)
    assert len(source.loadings) == 2


def test_failure_reaches_all_waiting_requests_and_is_not_remembered(remembered, source):
    """The next request loads again."""
    crowd = [get(remembered) for _ in range(3)]
    source.loadings[0].errback(OSError("gone"))
    assert all(results[0].check(OSError) for _, results in crowd)
    _, results = get(remembered)
    source.loadings[1].callback("value")
    assert results == ["value"]


def test_value_from_the_future_is_loaded_again(remembered, source, clock):
    """The clock was set back."""
    get(remembered)
    source.loadings[0].callback("value")
    clock.rightNow -= 500
    get(remembered)
    assert len(source.loadings) == 2
