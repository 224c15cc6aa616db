"""What the benchmarks conclude from their measurements."""

from contextlib import nullcontext
from itertools import count

import pytest

from bench.cells import Cell
from bench.pairs import Pairs, Plan, Quartiles, compare


def cell(name, rates, log=None):
    """A cell that measures these rates, one a turn, and writes its name to the log."""
    rates = iter(rates)

    def turn(seconds):
        if log is not None:
            log.append(name)
        return {"rate": next(rates), "errors": 0}

    return Cell(server=name, route="me", open=lambda: nullcontext(turn))


def test_a_ratio_is_the_median_of_the_ratios_of_pairs():
    """A pair that other load slowed down alike does not move the ratio, and medians of each side do not count."""
    pairs = Pairs([({"rate": one}, {"rate": other}) for one, other in ((130, 100), (13, 10), (60, 50), (140, 100))])
    ratio = pairs.ratio("rate")
    assert ratio == pytest.approx((1.275, 1.3, 1.325))
    assert ratio.spread == pytest.approx(0.05 / 1.3)
    assert pairs.medians("rate") == (95, 75)


def test_turns_are_ordered_abba():
    """Each cell is as often the first of a pair as the second, and its figures stay on its side."""
    log = []
    pairs = compare(cell("A", count(10), log), cell("B", count(20), log), Plan(seconds=1, fewest=4, most=4))
    assert "".join(log) == "ABBAABBA"
    assert [(one["rate"], other["rate"]) for one, other in pairs] == [(10, 20), (11, 21), (12, 22), (13, 23)]


@pytest.mark.parametrize(
    ("noise", "pairs"),
    [
        pytest.param((1.0, 1.02), 6, id="narrow: the fewest pairs"),
        pytest.param((1.0, 1.2), 20, id="wide: the most pairs"),
        pytest.param((1.0, 1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), 6, id="an outlier counts little"),
        pytest.param((1.0, 1.3, 1.0, 1.3) + (1.0,) * 20, 9, id="wide at first"),
    ],
)
def test_a_comparison_ends_when_its_ratios_are_narrow(noise, pairs):
    """A comparison ends with the fewest pairs if the middle half of their ratios differs by less than 5 %."""
    rates = [100 * each for each in noise * 20]
    plan = Plan(seconds=1, fewest=6, most=20)
    assert len(compare(cell("A", rates), cell("B", [100] * 20), plan)) == pairs


def test_every_figure_must_be_narrow():
    """A comparison goes on while the ratio of the CPU time of requests is wide."""
    pairs = Pairs([({"rate": 1, "service_us": 1 + turn % 2}, {"rate": 1, "service_us": 1}) for turn in range(8)])
    assert not Plan(seconds=1, fewest=4, most=20).is_enough(pairs)
    assert pairs.ratio("rate").spread == 0


def test_a_ratio_is_shown_with_its_range():
    """A ratio is printed with the range of its middle half."""
    assert str(Quartiles(1.0, 1.25, 1.5)) == "1.25 (1.00 to 1.50)"
