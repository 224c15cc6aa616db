"""Comparisons: two cells are measured in pairs of short turns, and each pair gives a ratio of every figure.

Other load of the machine changes from second to second. It slows both turns of a pair almost equally, and the median
ignores the pairs that it affects most. The order of turns is ABBA, so a steady drift makes as many ratios too high as
too low.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .cells import Cell, Figures


class Quartiles(NamedTuple):
    """The median of some values, and the range of their middle half."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Quartiles":
        """Compute the quartiles of at least two values."""
        return cls(*statistics.quantiles(values, n=4, method="inclusive"))

    @property
    def spread(self) -> float:
        """The interquartile range as a share of the median."""
        return (self.high - self.low) / self.median

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The length of a turn in seconds, and the number of pairs.

    A comparison ends before `most` pairs if it has `fewest` and the spreads of its ratios are below `narrow`. A median
    of four times as many pairs is twice as exact, so the spreads may then be twice as wide.
    """

    seconds: float
    fewest: int
    most: int
    narrow: float = 0.05

    def is_enough(self, pairs: "Pairs") -> bool:
        """Whether these pairs are enough."""
        if len(pairs) < self.fewest or len(pairs) >= self.most:
            return len(pairs) >= self.most
        wide = self.narrow * math.sqrt(len(pairs) / self.fewest)
        return all(pairs.ratio(name).spread < wide for name in pairs.compared)


class Pairs(list[tuple[Figures, Figures]]):
    """The figures of two cells, in pairs."""

    @property
    def compared(self) -> list[str]:
        """The figures whose ratios are results: the throughput, and the service's CPU time for a request."""
        return [name for name in ("rate", "service_us") if all(name in figures for figures in self[0])]

    def ratio(self, name: str) -> Quartiles:
        """Compute the quartiles of a figure's ratios, first cell to second."""
        return Quartiles.of(one[name] / other[name] for one, other in self)

    def medians(self, name: str) -> tuple[float, float]:
        """Compute the medians of a figure for each cell."""
        one, other = (statistics.median(each[name] for each in half) for half in zip(*self, strict=True))
        return one, other


SHORT = Plan(seconds=0.25, fewest=12, most=60)


def compare(one: Cell, other: Cell, plan: Plan) -> Pairs:
    """Measure two cells in turn until the plan has enough pairs."""
    pairs = Pairs()
    with one.open() as turn_of_one, other.open() as turn_of_other:
        while not plan.is_enough(pairs):
            if len(pairs) % 2 == 0:
                pairs.append((turn_of_one(plan.seconds), turn_of_other(plan.seconds)))
            else:
                figures = turn_of_other(plan.seconds)
                pairs.append((turn_of_one(plan.seconds), figures))
    return pairs
