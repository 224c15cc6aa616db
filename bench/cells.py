"""What is measured: each cell is one figure's worth of load on one server, and rounds go through all cells in turn.

So whatever else the machine does meanwhile meets all of them alike, and the median of the rounds forgets most of it.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .processes import Server
from .stage import Generator

CONNECTIONS = 32
SLOW = {"login": 6, "mix": 6}  # of the routes that hash: fewer than would wait for five seconds
PATIENCE = 4  # times as long for those: a handful of logins in a second is too coarse to compare

Figures = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measurement: `run` takes seconds and returns figures, "rate" among them."""

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
) -> Cell:
    """A cell that puts a workload on a server."""
    load = {"route": route, "port": server.port, "connections": SLOW.get(route, CONNECTIONS), "prefix": prefix}

    def run(seconds: float) -> Figures:
        groups = {"service": server.serving, "database": database()}
        return _figures(generator.measure([load], seconds * (PATIENCE if route in SLOW else 1), groups=groups))

    return Cell(server=name, route=route, run=run)


def login_and_me(generator: Generator, server: Server) -> Cell:
    """How long others wait while every core hashes: the p99 of me during logins."""
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
    """A cell of a yardstick that measures by itself."""
    return Cell(server=server, route=route, run=lambda seconds: {"rate": rate(seconds), "errors": 0})


def run_rounds(cells: Iterable[Cell], rounds: int, seconds: float, say: Callable[[str], None]) -> list[Figures]:
    """Measure every cell once a round; returns for each the medians of its figures."""
    cells = sorted(cells, key=lambda cell: cell.route)  # what is compared comes one after the other
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
