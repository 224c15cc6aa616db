"""What `make bench` measures: which cells it compares with what bounds, and which it measures alone."""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from .cells import CONNECTIONS, Cell, load_cell, login_and_me, rate_cell
from .cores import pinned
from .pairs import Plan
from .processes import Server
from .stage import Stage
from .workloads import WORKLOADS
from .world import TOWN
from .yardsticks import SCRIPTS, Psycopg2Loop, bcrypt_rate, pgbench, wrk

ROUTES = tuple(route for route in WORKLOADS if route != "mix_without_login")
PEER_ROUTES = ("me", "pull", "push", "refresh", "recent")
SAME_STATEMENT = ("me", "pull", "fetch")  # routes that run one statement, as on Klein
CONSTANT = ("health", "challenge", "recent", "leaderboard")  # routes that are answered from memory
ON_TWO = ("me", "pull", "push", "health")  # routes that are measured with two workers
ALONE = ("sessions", "verdict", "board", "upload", "analytics", "mix")

OTHERS = ("FastAPI", "FastAPI, plain", "Klein", "solisync", "pgbench", "psycopg2", "bcrypt", "Klein, by wrk")

SHORT = Plan(seconds=0.25, fewest=12, most=60)
WHOLE_SECONDS = Plan(seconds=1.0, fewest=6, most=12)  # pgbench and wrk run for whole seconds
HASHING = Plan(seconds=4.0, fewest=4, most=8)  # there are only a few logins in a second


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two cells, and the bounds of their ratios.

    `rate` is the least ratio of throughputs, and `cpu` the largest ratio of the services' CPU time for a request; None
    if there is no bound. `pinned` says whether every process stays on its own cores meanwhile: the services that are
    compared must need no more than one.
    """

    one: Cell
    other: Cell
    rate: float | None = None
    cpu: float | None = None
    plan: Plan = SHORT
    pinned: bool = False

    def __str__(self) -> str:
        same = self.one.route == self.other.route
        return f"{self.one.route}, {self.one.server} to {self.other.server}{'' if same else f' {self.other.route}'}"


class Servers:
    """The servers that are measured, and the cells of their routes; `two` is the service that has two workers."""

    def __init__(self, stage: Stage, two: Server) -> None:
        self._stage = stage
        self.generator = stage.generator()
        self.solisync = stage.solisync()
        self.fastapi = stage.module("bench.peer_fastapi", "/health")
        self.klein = stage.module("bench.klein_routes", "/health")
        self._two = two

    def comparisons(self) -> Iterator[Comparison]:
        """List the comparisons."""
        for route in PEER_ROUTES:
            mine = self._cell("solisync", self.solisync, route)
            peer = self._cell("FastAPI", self.fastapi, route)
            plain = self._cell("FastAPI, plain", self.fastapi, route, "/plain")
            # the refresh of the yardstick is one statement too, and asyncpg sends it with less work
            least = 0.9 if route == "refresh" else 1.0
            yield Comparison(one=mine, other=peer, rate=least, cpu=0.8, pinned=True)
            yield Comparison(one=mine, other=plain, pinned=True)
        for route in SAME_STATEMENT:
            mine, klein = self._cell("solisync", self.solisync, route), self._cell("Klein", self.klein, route)
            yield Comparison(one=mine, other=klein, rate=0.8, pinned=True)
        constant = self._cell("Klein", self.klein, "health")
        for route in CONSTANT:
            mine = self._cell("solisync", self.solisync, route)
            yield Comparison(one=mine, other=constant, rate=1.0, pinned=True)
        for route in ON_TWO:
            # at the others PostgreSQL needs most of a core for itself
            wanted = 1.4 if route in ("me", "health") else None
            two, one = self._cell("2 workers", self._two, route), self._cell("solisync", self.solisync, route)
            yield Comparison(one=two, other=one, rate=wanted)
        yield from self._limits()

    def _limits(self) -> Iterator[Comparison]:
        program = self._stage.program("pgbench")
        loop = Psycopg2Loop(self._stage.socket_dir, self._stage.world)
        for route in SCRIPTS:
            mine = self._cell("solisync", self.solisync, route)
            limit = rate_cell("pgbench", route, partial(pgbench, program, self._stage.socket_dir, TOWN, route))
            wanted = 0.3 if route == "push" else None
            yield Comparison(one=mine, other=limit, rate=wanted, plan=WHOLE_SECONDS)
            limit = rate_cell("psycopg2", route, partial(loop.rate, route))
            yield Comparison(one=mine, other=limit, plan=WHOLE_SECONDS)
        mine = self._cell("solisync", self.solisync, "login")
        limit = rate_cell("bcrypt", "login", bcrypt_rate)
        yield Comparison(one=mine, other=limit, rate=0.95, plan=HASHING)
        if shutil.which("wrk"):  # the same route once more, to see whether the load generator is the bottleneck
            mine = self._cell("Klein", self.klein, "health")
            limit = rate_cell("Klein, by wrk", "health", partial(wrk, self.klein.port, "/health", CONNECTIONS))
            yield Comparison(one=mine, other=limit, plan=WHOLE_SECONDS)

    def pinned(self) -> AbstractContextManager[None]:
        """Let the servers of one process, PostgreSQL and the load generator stay on their own cores for a while."""
        services = [self.solisync.pid, self.fastapi.pid, self.klein.pid]
        return pinned(lambda: (services, self._stage.database_pids(), [self.generator.pid]))

    def alone(self) -> list[Cell]:
        """List the cells that are compared with nothing."""
        cells = [self._cell("solisync", self.solisync, route) for route in ALONE]
        return [*cells, login_and_me(self.generator, self.solisync)]

    def _cell(self, name: str, server: Server, route: str, prefix: str = "") -> Cell:
        return load_cell(self.generator, name, server, route, self._stage.database_pids, prefix=prefix)
