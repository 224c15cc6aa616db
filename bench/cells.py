"""Cells: measurements of a server, in turns of any length."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from .processes import Server
from .stage import Generator

CONNECTIONS = 32
SLOW = {
    "login": 6,
    "mix": 6,
}  # connections for routes that hash passwords; with more, some would get 503

Figures = dict[str, Any]
Turn = Callable[[float], Figures]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A measurement of a server.

    `open` prepares turns. A turn measures for some seconds, and returns figures: at least "rate" and "errors".
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
    connections: int | None = None,
) -> Cell:
    """Make a cell that runs a workload against a server; `database` lists the pids of PostgreSQL."""
    most = connections or SLOW.get(route, CONNECTIONS)

    @contextmanager
    def opened() -> Iterator[Turn]:
        with generator.opened(route=route, port=server.port, connections=most) as turn:
            yield lambda seconds: _figures(turn(seconds, {"service": [server.pid], "database": database()}))

    return Cell(server=name, route=route, open=opened)


def _figures(turn: dict[str, Any]) -> Figures:
    figures = {name: turn[name] for name in ("rate", "p50", "p99")}
    figures["errors"] = sum(count for status, count in turn["statuses"].items() if status != "200")
    for group, used in turn["used"].items():
        figures[f"{group}_us"] = used / turn["count"] * 1e6
        figures[f"{group}_cores"] = used / turn["seconds"]
    return figures
