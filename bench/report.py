"""Reports of benchmarks: a table of figures, and the ratios with the bounds that were set for them."""

import json
import os
import platform
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .cells import MEANWHILE, Cell, Figures
from .pairs import Pairs

COLUMNS = {
    "route": "{}",
    "server": "{}",
    "rate": "{:.0f}/s",
    "p50": "{:.1f} ms",
    "p99": "{:.1f} ms",
    "service_us": "{:.0f} µs",
    "database_us": "{:.0f} µs",
    "generator_cores": "{:.2f}",
    "round_trips": "{:.2f}",
    "errors": "{}",
}
TITLES = {"service_us": "service CPU", "database_us": "database CPU", "generator_cores": "generator"}


class Result(NamedTuple):
    """One result: a ratio or another figure, and its bound.

    A ratio has its quartiles and the number of pairs that it comes from. After several runs `apart` is how far their
    ratios are apart, as a share of the smallest.
    """

    what: str
    value: float
    bound: float | None = None  # None: only reported
    at_most: bool = False
    low: float | None = None
    high: float | None = None
    pairs: int | None = None
    apart: float | None = None

    @classmethod
    def of(cls, what: str, name: str, runs: Sequence[Pairs], bound: float | None, *, at_most: bool = False) -> "Result":
        """The ratio of one figure, from the pairs of all runs."""
        pairs = Pairs(pair for run in runs for pair in run)
        low, value, high = pairs.ratio(name)
        medians = [run.ratio(name).median for run in runs]
        apart = max(medians) / min(medians) - 1 if len(runs) > 1 else None
        return cls(what, value, bound, at_most, low, high, len(pairs), apart)

    def __str__(self) -> str:
        verdict = wanted = ""
        if self.bound is not None:
            met = self.value <= self.bound if self.at_most else self.value >= self.bound
            verdict = "reached" if met else "MISSED"
            wanted = f"{'at most' if self.at_most else 'at least'} {self.bound:g}"
        spread = "" if self.low is None else f"{self.low:.2f} to {self.high:.2f} of {self.pairs}"
        apart = "" if self.apart is None else f"apart {self.apart:.1%}"
        return f"{verdict:8} {self.value:8.2f}  {spread:20}  {apart:11}  {wanted:13} {self.what}"


def say(what: str) -> None:
    """Report progress on standard error."""
    print(what, file=sys.stderr, flush=True)


class Rows:
    """The figures of all turns of cells, and their medians."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], list[Figures]] = defaultdict(list)

    def add(self, cell: Cell, turns: Iterable[Figures]) -> None:
        """Add turns of a cell."""
        self._turns[cell.route, cell.server] += turns

    def add_pairs(self, one: Cell, other: Cell, pairs: Pairs) -> None:
        """Add the turns of a comparison."""
        for cell, turns in zip((one, other), zip(*pairs, strict=True), strict=True):
            self.add(cell, turns)

    def measure(self, cells: Iterable[Cell], rounds: int, seconds: float) -> None:
        """Measure a turn of every cell in each round, every other round in reverse order."""
        cells = list(cells)
        for turn in range(rounds):
            for cell in cells if turn % 2 == 0 else reversed(cells):
                say(f"round {turn + 1} of {rounds}: {cell.route} of {cell.server}")
                with cell.open() as measure:
                    self.add(cell, [measure(seconds)])

    def medians(self) -> list[Figures]:
        """Return the medians of each cell's figures, and the sum of its errors, ordered by route."""
        return [
            {"server": server, "route": route, **_medians(turns)}
            for (route, server), turns in sorted(self._turns.items(), key=lambda item: item[0][0])
        ]


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


def ratios(what: str, runs: Sequence[Pairs], rate: float | None, cpu: float | None = None) -> Iterator[Result]:
    """Compute the ratios of a comparison from the pairs of its runs; `rate` and `cpu` are their bounds."""
    yield Result.of(f"{what}: throughput", "rate", runs, rate)
    if "service_us" in runs[0].compared:
        yield Result.of(f"{what}: service CPU per request", "service_us", runs, cpu, at_most=True)


def others(rows: list[Figures], other: dict[str, float]) -> Iterator[Result]:
    """Compare the figures that are no ratios with their bounds; `other` has those that belong to no route."""
    for row in rows:
        if row["route"] == MEANWHILE:
            yield Result("ms, the p99 of me during logins", row["p99"], 50, at_most=True)
    yield Result("seconds from the command to ready", other["start_seconds"], 1.5, at_most=True)
    yield Result("MiB of an idle process", other["idle_mib"], 70, at_most=True)
    if "mixed_mib" in other:
        what = f"MiB more after {other['mixed']:g} mixed requests"
        yield Result(what, other["mixed_mib"], 20, at_most=True)


def cpu_split(rows: list[Figures]) -> str:
    """How many cores the workers, PostgreSQL and the generator used in the measurement with two workers.

    They share the machine, which explains why two workers do not carry twice as much as one.
    """
    lines = [
        f"{row['route']}: workers {row['service_cores']:.2f}, PostgreSQL {row['database_cores']:.2f},"
        f" generator {row['generator_cores']:.2f} cores"
        for row in rows
        if row["server"] == "2 workers" and row["route"] in ("me", "pull", "push", "health")
    ]
    return "\n".join(lines)


def text(rows: list[Figures], other: dict[str, float], results: list[Result]) -> str:
    """Format the whole report as text."""
    figures = "\n".join(f"{name.replace('_', ' ')}: {value:.2f}" for name, value in other.items())
    return "\n\n".join(filter(None, [table(rows), figures, cpu_split(rows), "\n".join(map(str, results))]))


def write(path: Path, rows: list[Figures], other: dict[str, float], results: list[Result]) -> None:
    """Write the whole report as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    document = {"machine": machine, "cells": rows, "other": other, "results": [result._asdict() for result in results]}
    path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
