"""Conclusions of the benchmarks from their measurements."""

from contextlib import nullcontext
from itertools import count

import pytest

from bench.cells import Cell
from bench.cores import Layout, layout
from bench.pairs import Pairs, Plan, compare
from bench.report import Report
from bench.world import World, populate
from solisync.rules.stock import OPTED_IN
from tests.harness.postgres import run_sql

LOADED = """
    SELECT (SELECT count(*) FROM board_evidence JOIN leaderboard USING (user_id) WHERE board = 'classic' AND ranked),
        (SELECT count(*) FROM public_replays), (SELECT count(*) FROM public_replays WHERE verified),
        (SELECT count(*) FROM replay_checks)
"""


def cell(name, rates):
    """Return a cell that measures these rates, one a turn."""
    rates = iter(rates)
    return Cell(server=name, route="me", open=lambda: nullcontext(lambda seconds: {"rate": next(rates), "errors": 1}))


def test_ratio_is_the_median_of_the_ratios_of_pairs():
    """Other load slows down both sides of a pair. Medians of each side would not cancel it."""
    pairs = Pairs([({"rate": one}, {"rate": other}) for one, other in ((130, 100), (13, 10), (60, 50), (140, 100))])
    assert pairs.ratio("rate") == pytest.approx((1.275, 1.3, 1.325))


def test_turns_are_ordered_abba():
    """Each cell is the first of a pair as often as the second, and its figures stay on its side."""
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
def test_comparison_ends_when_its_ratios_are_narrow(noise, pairs):
    """Narrow means that the middle half of the ratios is within 5 %. Then the fewest pairs are enough."""
    plan = Plan(seconds=1, fewest=6, most=20)
    assert len(compare(cell("A", noise * 20), cell("B", [1.0] * 20), plan)) == pairs


def test_row_has_the_medians_of_all_turns():
    """Errors are added up."""
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
def test_service_has_its_own_core(cores, divided):
    """If there are two cores, it shares its core with neither PostgreSQL nor the generator."""
    assert layout(cores) == divided


def test_world_has_checked_replays_on_boards(migrated_database):
    """Loading it again leaves nothing of the one before."""
    for players in (60, 40):
        populate(migrated_database, World(players=players, replays=players))
    ((ranked, listed, verified, waiting),) = run_sql(migrated_database, LOADED)
    assert 40 * 0.9 * OPTED_IN * 0.5 < ranked <= 40 * 0.9
    assert (listed, verified, waiting) == (40, 36, 0)
