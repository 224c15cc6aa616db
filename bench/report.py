"""Reports of benchmarks: a table of figures, and the ratios with the bounds that were set for them."""

import json
import math
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Figures = dict[str, Any]

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
SAME_ROW = ("me", "pull", "fetch")  # routes that run one statement, as on Klein
CONSTANT = ("challenge", "recent", "leaderboard")  # routes that are answered from memory


class Ratio(NamedTuple):
    """One result: a ratio or another figure, and its bound."""

    what: str
    value: float
    bound: float | None  # None: only reported
    at_most: bool = False

    def __str__(self) -> str:
        if self.bound is None:
            return f"{'':8} {self.value:8.2f}  {'':13} {self.what}"
        met = self.value <= self.bound if self.at_most else self.value >= self.bound
        wanted = f"{'at most' if self.at_most else 'at least'} {self.bound:g}"
        return f"{'reached' if met else 'MISSED':8} {self.value:8.2f}  {wanted:13} {self.what}"


def say(what: str) -> None:
    """Report progress on standard error."""
    print(what, file=sys.stderr, flush=True)


def table(rows: list[Figures]) -> str:
    """Format the figures as a table."""
    cells = [[TITLES.get(column, column.replace("_", " ")) for column in COLUMNS]]
    for row in rows:
        cells.append([form.format(row[column]) if column in row else "" for column, form in COLUMNS.items()])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(lines)


def ratios(rows: list[Figures], other: Figures) -> Iterator[Ratio]:
    """Compute the ratios and compare them with their bounds; `other` has the figures that belong to no route."""

    def figure(server: str, route: str, name: str = "rate") -> float:
        return next((row[name] for row in rows if (row["server"], row["route"]) == (server, route)), math.nan)

    def share(route: str, server: str) -> float:
        return figure("solisync", route) / figure(server, route)

    for route in ("me", "pull", "refresh", "push", "recent"):
        # the refresh of the yardstick is one statement too, and asyncpg sends it with less work
        wanted = 0.9 if route == "refresh" else 1.0
        yield Ratio(f"{route}: throughput of FastAPI", share(route, "FastAPI"), wanted)
        cpu = figure("solisync", route, "service_us") / figure("FastAPI", route, "service_us")
        yield Ratio(f"{route}: service CPU per request of FastAPI's", cpu, 0.8, at_most=True)
        yield Ratio(f"{route}: throughput of FastAPI with plain routes", share(route, "FastAPI, plain"), None)
    for route, of in {**{route: route for route in SAME_ROW}, **dict.fromkeys(CONSTANT, "health")}.items():
        what = "a constant Klein route" if route in CONSTANT else "a Klein route with the same statement"
        wanted = 1.0 if route in CONSTANT else 0.8
        yield Ratio(f"{route}: throughput of {what}", figure("solisync", route) / figure("Klein", of), wanted)
        cpu = figure("Klein", of, "service_us") / figure("solisync", route, "service_us")
        yield Ratio(f"{route}: service CPU per request of {what}, to that of solisync", cpu, None)
    for route in ("me", "pull", "push"):
        wanted = 0.3 if route == "push" else None
        yield Ratio(f"{route}: throughput of pgbench", share(route, "pgbench"), wanted)
        yield Ratio(f"{route}: throughput of a psycopg2 loop", share(route, "psycopg2"), None)
    yield Ratio("login: throughput of bcrypt alone", share("login", "bcrypt"), 0.95)
    yield Ratio("p99 in ms of me during logins", figure("solisync", "me during login", "p99"), 50, at_most=True)
    for route in ("me", "pull", "push", "health"):
        yield Ratio(
            f"{route}: throughput of two workers to one process",
            figure("2 workers", route) / figure("solisync", route),
            1.4 if route in ("me", "health") else None,  # at the others PostgreSQL needs most of a core for itself
        )
    yield Ratio("seconds from the command to ready", other["start_seconds"], 1.5, at_most=True)
    yield Ratio("MiB of an idle process", other["idle_mib"], 70, at_most=True)
    if "mixed_mib" in other:
        what = f"MiB more after {other['mixed']} mixed requests"
        yield Ratio(what, other["mixed_mib"], 20, at_most=True)


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


def text(rows: list[Figures], other: Figures, results: list[Ratio]) -> str:
    """Format the whole report as text."""
    figures = "\n".join(f"{name.replace('_', ' ')}: {value:.2f}" for name, value in other.items())
    return "\n\n".join(filter(None, [table(rows), figures, cpu_split(rows), "\n".join(map(str, results))]))


def write(path: Path, rows: list[Figures], other: Figures, results: list[Ratio]) -> None:
    """Write the whole report as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    document = {"machine": machine, "cells": rows, "other": other, "ratios": [result._asdict() for result in results]}
    path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
