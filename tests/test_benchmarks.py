"""What the benchmarks conclude from their measurements."""

import os
import subprocess
import time
from contextlib import nullcontext
from itertools import count

import pytest

from bench.cells import Cell
from bench.cores import Layout, layout, pinned
from bench.pairs import Pairs, Plan, Quartiles, compare
from bench.processes import cpu_seconds
from bench.report import Result, Rows


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
        pytest.param((1.0, 1.08), 16, id="less wide: more pairs make up for it"),
        pytest.param((1.0, 1.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), 6, id="an outlier counts little"),
        pytest.param((1.0, 1.3, 1.0, 1.3) + (1.0,) * 20, 9, id="wide at first"),
    ],
)
def test_a_comparison_ends_when_its_ratios_are_narrow(noise, pairs):
    """A comparison ends with the fewest pairs if the middle half of their ratios is within 5 %, else a little later."""
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


def test_runs_are_compared_by_their_ratios():
    """The result of several runs is the ratio of all their pairs; how far apart the ratios of the runs are, is told."""
    runs = [Pairs([({"rate": rate}, {"rate": 100})] * 8) for rate in (120, 100, 110)]
    result = Result.of("me", "rate", runs, 1.0)
    assert (result.value, result.low, result.high) == pytest.approx((1.1, 1.0, 1.2))
    assert (result.pairs, result.apart) == (24, pytest.approx(0.2))
    assert " ".join(str(result).split()) == "reached 1.10 1.00 to 1.20 of 24 apart 20.0% at least 1 me"
    assert Result.of("me", "rate", runs[:1], 1.3).apart is None
    assert str(Result.of("me", "rate", runs[:1], 1.3)).startswith("MISSED")


def test_a_row_has_the_medians_of_all_turns():
    """The figures of a cell are medians of its turns in all comparisons, and its errors are added up."""
    rows, one, other = Rows(), cell("A", ()), cell("B", ())
    for rates in ((1, 2, 3), (10, 20)):
        rows.add_pairs(one, other, Pairs([({"rate": rate, "errors": 1}, {"rate": 7, "errors": 0}) for rate in rates]))
    assert rows.medians() == [
        {"route": "me", "server": "A", "rate": 3, "errors": 5},
        {"route": "me", "server": "B", "rate": 7, "errors": 0},
    ]


@pytest.mark.parametrize(
    ("cores", "divided"),
    [
        ({3}, Layout({3}, {3}, {3})),
        ({0, 1}, Layout({0}, {1}, {1})),
        ({0, 1, 2}, Layout({0}, {1}, {2})),
        ({1, 4, 5, 7}, Layout({1}, {4, 5}, {7})),
    ],
)
def test_the_service_has_a_core_of_its_own(cores, divided):
    """The service shares its core with neither PostgreSQL nor the generator, if there are two."""
    assert layout(cores) == divided


def test_pinned_processes_are_released():
    """Processes stay on their cores for a while, and a process that has ended meanwhile harms nothing."""
    usable = os.sched_getaffinity(0)
    processes = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
    with pinned(lambda: tuple([process.pid] for process in processes)):
        assert [os.sched_getaffinity(process.pid) for process in processes] == [*layout(usable)]
        processes[0].kill()
        processes[0].wait()
    for process in processes[1:]:
        assert os.sched_getaffinity(process.pid) == usable
        process.kill()
        process.wait()


def test_processor_time_is_exact():
    """The processor time of a process is that of its own clock, and a process that has ended has none."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    before = time.process_time()
    used = cpu_seconds([os.getpid(), ended.pid])
    assert used.keys() == {os.getpid()}
    assert before <= used[os.getpid()] <= time.process_time()
