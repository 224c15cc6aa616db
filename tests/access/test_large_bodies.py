"""The budget of large bodies, on a test clock (docs/security.md "Bounds")."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from solisync.access.large_bodies import BURST_BYTES, BYTES_PER_SECOND, LARGE_BYTES, REMEMBERED, LargeBodies
from solisync.errors import TooMany

MIB = 2**20


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def budget(clock):
    return LargeBodies(seconds=clock.seconds)


def refusal(budget, client, size):
    """Return the seconds to wait, or None if the body is admitted."""
    try:
        budget.admit(client, size)
    except TooMany as error:
        return error.retry_after
    return None


def test_client_may_send_twenty_of_the_largest_bodies_and_then_two_a_second(budget, clock):
    """The budget is 20 MiB, and grows by 2 MiB a second. The refusal has the time when there is room again."""
    assert [refusal(budget, "ann", MIB) for _ in range(21)] == [None] * 20 + [1]
    clock.advance(0.5)
    assert [refusal(budget, "ann", MIB) for _ in range(2)] == [None, 1]
    clock.advance(1)
    assert [refusal(budget, "ann", MIB) for _ in range(3)] == [None, None, 1]
    clock.advance(1000)
    assert [refusal(budget, "ann", MIB) for _ in range(21)] == [None] * 20 + [1]


def test_clients_have_separate_budgets(budget):
    for client in ("ann", "192.0.2.1"):
        assert [refusal(budget, client, BURST_BYTES) for _ in range(2)] == [None, 10]


def test_clock_that_is_set_back_keeps_the_budget(budget, clock):
    """The budget neither grows nor shrinks, and grows as usual from there."""
    budget.admit("ann", BURST_BYTES)
    clock.rightNow -= 3600
    assert refusal(budget, "ann", MIB) == 1
    clock.advance(0.5)
    assert refusal(budget, "ann", MIB) is None


def test_remembered_clients_are_bounded(budget):
    """The client with the oldest large body is forgotten first."""
    budget.admit("first", BURST_BYTES)
    budget.admit("second", BURST_BYTES)
    assert refusal(budget, "first", MIB) == 1
    for number in range(REMEMBERED - 1):
        budget.admit(str(number), 1)
    assert len(budget._buckets) == REMEMBERED
    assert (refusal(budget, "first", MIB), refusal(budget, "second", MIB)) == (1, None)


def test_slow_parsing_costs_more_than_its_size(clock):
    """Time beyond 25 ms a MiB is charged, even for a failure. In the long run, parsing takes 5 % of the time."""
    cpu = Clock()
    budget = LargeBodies(seconds=clock.seconds, cpu_seconds=cpu.seconds)

    def parse(seconds):
        budget.admit("ann", MIB)
        with suppress(ValueError), budget.parsing("ann", MIB):
            cpu.advance(seconds)
            raise ValueError

    for _ in range(20):
        parse(0.024)
    assert refusal(budget, "ann", MIB) == 1
    clock.advance(10)
    for _ in range(4):
        parse(0.125)
    assert refusal(budget, "ann", MIB) == 1
    clock.advance(0.5)
    parse(1)
    assert refusal(budget, "ann", MIB) == 20  # 39 MiB, and this one


def test_push_is_charged_for_the_larger_of_body_and_stored_progress(budget):
    """The body's own size was charged when it was admitted. Up to 64 KiB are free."""
    for pushed, stored, charged in (
        (LARGE_BYTES, LARGE_BYTES, 0),
        (MIB, LARGE_BYTES, 0),
        (600, MIB, MIB),
        (LARGE_BYTES, LARGE_BYTES + 1, LARGE_BYTES + 1),
        (MIB // 4, MIB, MIB - MIB // 4),
    ):
        client = f"{pushed} {stored}"
        with budget.merging(client, pushed=pushed, stored=stored):
            pass
        assert refusal(budget, client, BURST_BYTES - charged) is None
        assert refusal(budget, client, 1) == 1


def test_refused_merge_does_not_begin(clock):
    """The refusal is raised and reported, whatever the body has been charged."""
    refusals = []
    budget = LargeBodies(seconds=clock.seconds, on_refusal=lambda: refusals.append(1))
    budget.admit("ann", BURST_BYTES)
    with pytest.raises(TooMany), budget.merging("ann", pushed=MIB // 2, stored=MIB):
        pytest.fail("it was begun")
    assert refusals == [1]


def test_slow_merge_costs_more_than_its_size(clock):
    """Time beyond 25 ms a MiB is charged, in addition to the time of parsing.

    In the long run, merging takes 5 % of the time.
    """
    cpu = Clock()
    budget = LargeBodies(seconds=clock.seconds, cpu_seconds=cpu.seconds)
    with budget.merging("ann", pushed=600, stored=MIB):
        cpu.advance(0.5)
    assert refusal(budget, "ann", MIB) == 1  # all twenty are spent
    clock.advance(0.5)
    with budget.merging("ann", pushed=600, stored=MIB):
        cpu.advance(0.025)
    assert refusal(budget, "ann", MIB) == 1


@given(st.lists(st.tuples(st.integers(65_537, MIB), st.floats(0, 3)), max_size=60))
def test_budget_is_never_exceeded(bodies):
    """The bytes admitted in any time are at most the burst and the growth since. Retry-After is long enough."""
    clock = Clock()
    budget = LargeBodies(seconds=clock.seconds)
    admitted = 0
    for size, pause in bodies:
        clock.advance(pause)
        wait = refusal(budget, "ann", size)
        if wait is not None:
            clock.advance(wait)
            assert refusal(budget, "ann", size) is None
        admitted += size
        assert admitted <= BURST_BYTES + clock.seconds() * BYTES_PER_SECOND + 1
