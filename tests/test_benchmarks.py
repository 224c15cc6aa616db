"""What the benchmarks conclude from their measurements."""

from contextlib import nullcontext
from itertools import count

import pytest

from bench.cells import Cell
from bench.cores import Layout, layout
from bench.pairs import Pairs, Plan, compare
from bench.report import Report


def cell(name, rates):
    """A cell that measures these rates, one a turn."""
    rates = iter(rates)
    return Cell(server=name, route="me", open=lambda: nullcontext(lambda seconds: {"rate": next(rates), "errors": 1}))


def test_a_ratio_is_the_median_of_the_ratios_of_pairs():
    """A pair that other load slowed down alike does not move the ratio, and medians of each side do not count."""
    pairs = Pairs([({"rate": one}, {"rate": other}) for one, other in ((130, 100), (13, 10), (60, 50), (140, 100))])
    assert pairs.ratio("rate") == pytest.approx((1.275, 1.3, 1.325))


def test_turns_are_ordered_abba():
    """Each cell is as often the first of a pair as the second, and its figures stay on its side."""
    both = count()
    pairs = compare(cell("A", both), cell("B", both), Plan(seconds=1, fewest=4, most=4))
    assert [(one["rate"], other["rate"]) for one, other in pairs] == [(0, 1), (3, 2), (4, 5), (7, 6)]


@pytest.mark.parametrize(
    ("noise", "pairs"),
    [
        pytest.param((1.0, 1.02), 6, id="narrow: the fewest pairs"),
        pytest.param((1.0, 1.2), 20, id="wide: the most pairs"),
        pytest.param((1.0, 1.08), 16, id="less wide: more pairs make up for it"),
    ],
)
def test_a_comparison_ends_when_its_ratios_are_narrow(noise, pairs):
    """A comparison ends with the fewest pairs if the middle half of their ratios is within 5 %, else a little later."""
    plan = Plan(seconds=1, fewest=6, most=20)
    assert len(compare(cell("A", noise * 20), cell("B", [1.0] * 20), plan)) == pairs


def test_a_row_has_the_medians_of_all_turns():
    """The figures of a cell are medians of its turns, and its errors are added up."""
    report = Report()
    report.measure([cell("A", (1, 2, 3))] * 3, rounds=1, seconds=1)
    assert report.rows() == [{"route": "me", "server": "A", "rate": 2, "errors": 3}]


@pytest.mark.parametrize(
    ("cores", "divided"),
    [
        ({3}, Layout({3}, {3}, {3})),
        ({0, 1}, Layout({0}, {1}, {1})),
        ({1, 4, 5, 7}, Layout({1}, {4, 5}, {7})),
    ],
)
def test_the_service_has_a_core_of_its_own(cores, divided):
    """The service shares its core with neither PostgreSQL nor the generator, if there are two."""
    assert layout(cores) == divided
