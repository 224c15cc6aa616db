"""Lists that are remembered for a second: loaded once for a crowd, never older than a change of ours.

Source: docs/protocol.md "The leaderboard".
"""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from solisync.web.shared_cache import SECONDS, CoalescingCache


class Source:
    """What is remembered: the test answers each loading when it wants to."""

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
    """Ask; the list gets the value or the failure."""
    results = []
    deferred = Deferred.fromCoroutine(remembered.get())
    deferred.addBoth(results.append)
    return deferred, results


def test_each_variant_is_a_value_of_its_own(source, clock):
    """Each is loaded and kept by itself; a change of ours ends them all."""
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


def test_a_crowd_at_expiry_is_one_loading(remembered, source, clock):
    """However many ask at the moment when the value is too old, it is loaded once, and all of them get it."""
    for turn in (1, 2):
        crowd = [get(remembered) for _ in range(100)]
        assert len(source.loadings) == turn
        source.loadings[-1].callback(turn)
        assert [results for _, results in crowd] == [[turn]] * 100
        clock.advance(SECONDS)


def test_a_value_is_a_second_old_at_most(remembered, source, clock):
    """The second begins with the loading, because that is when the database may have looked."""
    get(remembered)
    clock.advance(0.4)
    source.loadings[0].callback("first")
    clock.advance(SECONDS - 0.41)
    assert get(remembered)[1] == ["first"]
    clock.advance(0.01)
    assert get(remembered)[1] == []
    assert len(source.loadings) == 2


def test_nobody_joins_a_loading_that_takes_too_long(remembered, source, clock):
    """Who asks a second after a loading began may not get what it finds; the newer value is the one that stays."""
    _, early = get(remembered)
    clock.advance(SECONDS)
    _, late = get(remembered)
    source.loadings[1].callback("new")
    source.loadings[0].callback("old")
    assert (early, late, get(remembered)[1]) == (["old"], ["new"], ["new"])


def test_a_change_is_seen_by_whoever_asks_after_it(remembered, source):
    """A loading that began before a change is given to those who waited for it and to nobody else, nor remembered."""
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
def test_a_hang_up_ends_nobody_elses_waiting(remembered, source, gone):
    """Whichever client leaves, the first one included, the loading goes on and the others get its value."""
    crowd = [get(remembered) for _ in range(3)]
    crowd[gone][0].cancel()
    assert crowd[gone][1][0].check(CancelledError)
    source.loadings[0].callback("value")
    assert [results for n, (_, results) in enumerate(crowd) if n != gone] == [["value"]] * 2
    assert len(source.loadings) == 1


def test_a_loading_that_nobody_waits_for_any_more_fails_silently(remembered, source):
    """The failure is nobody's business then, and the next caller loads anew."""
    get(remembered)[0].cancel()
    source.loadings[0].errback(OSError("gone"))
    get(remembered)
    assert len(source.loadings) == 2


def test_a_failure_is_told_to_all_and_not_remembered(remembered, source):
    """Those who waited learn of it; who asks next has it loaded anew."""
    crowd = [get(remembered) for _ in range(3)]
    source.loadings[0].errback(OSError("gone"))
    assert all(results[0].check(OSError) for _, results in crowd)
    _, results = get(remembered)
    source.loadings[1].callback("value")
    assert results == ["value"]


def test_a_clock_that_was_set_back_keeps_nothing_for_ever(remembered, source, clock):
    """A value from what is now the future is loaded anew."""
    get(remembered)
    source.loadings[0].callback("value")
    clock.rightNow -= 500
    get(remembered)
    assert len(source.loadings) == 2
