"""Reports of benchmarks: a table of figures, and ratios with their bounds."""

import json
import os
import platform
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .cells import Cell, Figures
from .pairs import Pairs, Plan, compare

COLUMNS = {
    "route": "{}",
    "server": "{}",
    "rate": "{:.0f}/s",
    "p50": "{:.1f} ms",
    "p99": "{:.1f} ms",
    "service_us": "{:.0f} µs",
    "database_us": "{:.0f} µs",
    "generator_cores": "{:.2f}",
    "errors": "{}",
}
TITLES = {"service_us": "service CPU", "database_us": "database CPU", "generator_cores": "generator"}


def say(what: str) -> None:
    """Report progress on standard error."""
    print(what, file=sys.stderr, flush=True)


class Result(NamedTuple):
    """A result: a ratio or another figure, and its bound; a ratio has quartiles and the number of pairs."""

    what: str
    value: float
    bound: float | None = None  # None: only reported
    at_most: bool = False
    low: float | None = None
    high: float | None = None
    pairs: int | None = None

    @classmethod
    def of(cls, what: str, name: str, pairs: Pairs, bound: float | None, *, at_most: bool = False) -> "Result":
        """Make the result for the ratio of a figure."""
        low, value, high = pairs.ratio(name)
        return cls(what, value, bound, at_most, low, high, len(pairs))

    def __str__(self) -> str:
        verdict = wanted = ""
        if self.bound is not None:
            met = self.value <= self.bound if self.at_most else self.value >= self.bound
            verdict = "reached" if met else "MISSED"
            wanted = f"{'at most' if self.at_most else 'at least'} {self.bound:g}"
        spread = "" if self.low is None else f"{self.low:.2f} to {self.high:.2f} of {self.pairs}"
        return f"{verdict:8} {self.value:8.2f}  {spread:20}  {wanted:13} {self.what}"


class Report:
    """The figures of all turns of cells, other figures by name, and the results."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], list[Figures]] = defaultdict(list)
        self.other: dict[str, float] = {}
        self.results: list[Result] = []

    def add(self, cell: Cell, turns: Iterable[Figures]) -> None:
        """Add turns of a cell."""
        self._turns[cell.route, cell.server] += turns

    def measure(self, cells: list[Cell], rounds: int, seconds: float) -> None:
        """Measure a turn of every cell in each round, every other round in reverse order."""
        for turn in range(rounds):
            for cell in cells if turn % 2 == 0 else reversed(cells):
                say(f"round {turn + 1} of {rounds}: {cell.route} of {cell.server}")
                with cell.open() as measure:
                    self.add(cell, [measure(seconds)])

    def compare(self, one: Cell, other: Cell, plan: Plan, rate: float, cpu: float | None = None) -> None:
        """Compare two cells; `rate` is the least allowed ratio of throughputs, `cpu` the largest one of CPU times."""
        pairs = compare(one, other, plan)
        for cell, turns in zip((one, other), zip(*pairs, strict=True), strict=True):
            self.add(cell, turns)
        what = f"{one.route}, {one.server} to {other.server}"
        say(f"{what}: {pairs.ratio('rate')} in {len(pairs)} pairs")
        self.results.append(Result.of(f"{what}: throughput", "rate", pairs, rate))
        if "service_us" in pairs.compared:
            what += ": service CPU per request"
            self.results.append(Result.of(what, "service_us", pairs, cpu, at_most=True))

    def rows(self) -> list[Figures]:
        """Return the medians of each cell's figures, and the sum of its errors, ordered by route."""
        return [
            {"server": server, "route": route, **_medians(turns)}
            for (route, server), turns in sorted(self._turns.items(), key=lambda item: item[0][0])
        ]

    def show(self, file: Path) -> None:
        """Print everything, and write it to a file as JSON."""
        figures = "\n".join(f"{name.replace('_', ' ')}: {value:.2f}" for name, value in self.other.items())
        print("\n\n".join([table(self.rows()), figures, "\n".join(map(str, self.results))]))
        file.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
            "cells": self.rows(),
            "other": self.other,
            "results": [result._asdict() for result in self.results],
        }
        file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def _medians(turns: list[Figures]) -> Figures:
    medians = {name: statistics.median(each[name] for each in turns) for name in turns[0] if name != "errors"}
    return medians | {"errors": sum(each["errors"] for each in turns)}


def table(rows: list[Figures]) -> str:
    """Format the figures as a table."""
    cells = [[TITLES.get(column, column.replace("_", " ")) for column in COLUMNS]]
    for row in rows:
        cells.append([form.format(row[column]) if column in row else "" for column, form in COLUMNS.items()])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(lines)
