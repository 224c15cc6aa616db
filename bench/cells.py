"""Cells: what is measured of one server, in turns of any length."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from .processes import Server
from .stage import Generator

CONNECTIONS = 32
SLOW = {"login": 6, "mix": 6}  # connections on routes that hash passwords: with more, some wait too long and get 503

MEANWHILE = "login, me beside it"  # the route of the cell that measures me during logins

Figures = dict[str, Any]
Turn = Callable[[float], Figures]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is measured of one server.

    `open` prepares turns: a turn measures for some seconds, and returns figures, at least "rate" and "errors".
    """

    server: str
    route: str
    open: Callable[[], AbstractContextManager[Turn]]


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

    @contextmanager
    def opened() -> Iterator[Turn]:
        with generator.opened(load) as turn:
            yield lambda seconds: _figures(turn(seconds, groups={"service": server.serving, "database": database()}))

    return Cell(server=name, route=route, open=opened)


def login_and_me(generator: Generator, server: Server) -> Cell:
    """Make a cell that measures the latency of me while logins keep every core busy with hashing."""
    loads = [
        {"route": "me", "port": server.port, "connections": 2},
        {"route": "login", "port": server.port, "connections": SLOW["login"]},
    ]

    @contextmanager
    def opened() -> Iterator[Turn]:
        with generator.opened(*loads) as turn:
            yield lambda seconds: _figures(turn(seconds))

    return Cell(server="solisync", route=MEANWHILE, open=opened)


def _figures(result: dict[str, Any]) -> Figures:
    load, used, seconds = result["loads"][0], result["used"], result["seconds"]
    figures = {name: load[name] for name in ("rate", "p50", "p99")}
    figures["errors"] = sum(count for status, count in load["statuses"].items() if status != "200")
    for group, each in used.items():
        figures[f"{group}_us"] = each / load["count"] * 1e6
        figures[f"{group}_cores"] = each / seconds
    return figures


def rate_cell(server: str, route: str, rate: Callable[[float], float]) -> Cell:
    """Make a cell of a yardstick that needs no load generator: `rate(seconds)` returns its rate."""
    return Cell(
        server=server, route=route, open=lambda: nullcontext(lambda seconds: {"rate": rate(seconds), "errors": 0})
    )
