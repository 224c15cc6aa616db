"""The budget of large bodies, on a clock of the test's own (docs/security.md "Bounds")."""

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
    """The seconds to wait, or None if the body is admitted."""
    try:
        budget.admit(client, size)
    except TooMany as error:
        return error.retry_after
    return None


def test_twenty_of_the_largest_pass_at_once_and_then_two_a_second(budget, clock):
    """A client may send 20 MiB, then 2 MiB a second; the refusal says when there is room again."""
    assert [refusal(budget, "ann", MIB) for _ in range(21)] == [None] * 20 + [1]
    clock.advance(0.5)
    assert [refusal(budget, "ann", MIB) for _ in range(2)] == [None, 1]
    clock.advance(1)
    assert [refusal(budget, "ann", MIB) for _ in range(3)] == [None, None, 1]
    clock.advance(1000)
    assert [refusal(budget, "ann", MIB) for _ in range(21)] == [None] * 20 + [1]


def test_each_client_has_a_budget_of_its_own(budget):
    """What one has spent, no other one lacks."""
    for client in ("ann", "192.0.2.1"):
        assert [refusal(budget, client, BURST_BYTES) for _ in range(2)] == [None, 10]


def test_a_clock_that_is_set_back_takes_nothing_away(budget, clock):
    """The budget neither grows nor shrinks, and fills up from there."""
    budget.admit("ann", BURST_BYTES)
    clock.rightNow -= 3600
    assert refusal(budget, "ann", MIB) == 1
    clock.advance(0.5)
    assert refusal(budget, "ann", MIB) is None


def test_only_so_many_clients_are_remembered(budget):
    """Whoever has sent nothing large for longest is forgotten first."""
    budget.admit("first", BURST_BYTES)
    budget.admit("second", BURST_BYTES)
    assert refusal(budget, "first", MIB) == 1
    for number in range(REMEMBERED - 1):
        budget.admit(str(number), 1)
    assert len(budget._buckets) == REMEMBERED
    assert (refusal(budget, "first", MIB), refusal(budget, "second", MIB)) == (1, None)


def test_slow_parsing_costs_more_than_its_size(clock):
    """What takes longer than 25 ms a MiB is charged for its time, also where parsing fails: in the long run 5 %."""
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
    assert refusal(budget, "ann", MIB) == 20  # 39 MiB, and the one that is asked for


def test_a_push_is_charged_for_the_larger_of_what_is_pushed_and_stored(budget):
    """The body's own size was charged when it was admitted; what is not over 64 KiB is free."""
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


def test_a_merge_that_is_not_admitted_is_not_begun(clock):
    """It raises, and is reported as a refusal, whatever its body has paid."""
    refusals = []
    budget = LargeBodies(seconds=clock.seconds, on_refusal=lambda: refusals.append(1))
    budget.admit("ann", BURST_BYTES)
    with pytest.raises(TooMany), budget.merging("ann", pushed=MIB // 2, stored=MIB):
        pytest.fail("it was begun")
    assert refusals == [1]


def test_a_slow_merge_costs_more_than_its_size(clock):
    """Beyond 25 ms a MiB it is charged for its time, once more beside that of parsing: 5 % in the long run."""
    cpu = Clock()
    budget = LargeBodies(seconds=clock.seconds, cpu_seconds=cpu.seconds)
    with budget.merging("ann", pushed=600, stored=MIB):
        cpu.advance(0.5)
    assert refusal(budget, "ann", MIB) == 1  # twenty are spent
    clock.advance(0.5)
    with budget.merging("ann", pushed=600, stored=MIB):
        cpu.advance(0.025)
    assert refusal(budget, "ann", MIB) == 1


@given(st.lists(st.tuples(st.integers(65_537, MIB), st.floats(0, 3)), max_size=60))
def test_no_more_is_admitted_than_the_budget_has(bodies):
    """In any time the admitted bytes are at most the burst and what came in since; Retry-After is long enough."""
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
