"""Cells: one measurement of one server each. A round measures every cell, and medians over the rounds are reported.

Cells that are compared follow each other within a round, so other activity of the machine affects them alike; the
median removes most of what remains.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .processes import Server
from .stage import Generator

CONNECTIONS = 32
SLOW = {"login": 6, "mix": 6}  # connections on routes that hash passwords: with more, some wait too long and get 503
PATIENCE = 4  # how many times longer those are measured: there are only a few logins in a second

Figures = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measurement of one server: `run(seconds)` returns figures, at least "rate" and "errors"."""

    server: str
    route: str
    run: Callable[[float], Figures]


def load_cell(
    generator: Generator,
    name: str,
    server: Server,
    route: str,
    database: Callable[[], list[int]],
    *,
    prefix: str = "",
    connections: int | None = None,
) -> Cell:
    """Make a cell that runs a workload against a server; `database` lists the pids of PostgreSQL."""
    most = connections or SLOW.get(route, CONNECTIONS)
    load = {"route": route, "port": server.port, "connections": most, "prefix": prefix}

    def run(seconds: float) -> Figures:
        groups = {"service": server.serving, "database": database()}
        return _figures(generator.measure([load], seconds * (PATIENCE if route in SLOW else 1), groups=groups))

    return Cell(server=name, route=route, run=run)


def login_and_me(generator: Generator, server: Server) -> Cell:
    """Make a cell that measures the latency of me while logins keep every core busy with hashing."""
    loads = [
        {"route": "me", "port": server.port, "connections": 2},
        {"route": "login", "port": server.port, "connections": SLOW["login"]},
    ]
    return Cell(
        server="solisync",
        route="me during login",
        run=lambda seconds: _figures(generator.measure(loads, max(seconds, 2.0))),
    )


def _figures(result: dict[str, Any]) -> Figures:
    load, cores, seconds = result["loads"][0], result["cores"], result["seconds"]
    figures = {name: load[name] for name in ("rate", "p50", "p99")}
    figures["errors"] = sum(count for status, count in load["statuses"].items() if status != "200")
    for group in ("service", "database", "generator"):
        if group in cores and load["count"]:
            figures[f"{group}_us"] = cores[group] * seconds / load["count"] * 1e6
            figures[f"{group}_cores"] = cores[group]
    return figures


def rate_cell(server: str, route: str, rate: Callable[[float], float]) -> Cell:
    """Make a cell of a yardstick that needs no load generator: `rate(seconds)` returns its rate."""
    return Cell(server=server, route=route, run=lambda seconds: {"rate": rate(seconds), "errors": 0})


def run_rounds(cells: Iterable[Cell], rounds: int, seconds: float, say: Callable[[str], None]) -> list[Figures]:
    """Measure every cell once a round; returns the medians of each cell's figures, and the sum of its errors."""
    cells = sorted(cells, key=lambda cell: cell.route)  # cells that are compared follow each other
    measured: dict[int, list[Figures]] = defaultdict(list)
    for turn in range(rounds):
        order = list(enumerate(cells))
        for number, cell in order if turn % 2 == 0 else reversed(order):
            say(f"round {turn + 1} of {rounds}: {cell.route} of {cell.server}")
            measured[number].append(cell.run(seconds))
    return [{"server": cell.server, "route": cell.route, **_medians(measured[n])} for n, cell in enumerate(cells)]


def _medians(rounds: list[Figures]) -> Figures:
    medians = {name: statistics.median(each[name] for each in rounds) for name in rounds[0] if name != "errors"}
    return medians | {"errors": sum(each["errors"] for each in rounds)}
