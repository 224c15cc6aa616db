"""`make bench`: throughput, latency and CPU time of every route, as a table and as JSON.

The yardsticks are measured in the same run: pgbench, a psycopg2 loop and bcrypt are upper limits; Klein and FastAPI are
alternatives.
"""

import argparse
import math
import shutil
from functools import partial
from pathlib import Path

from . import report
from .agreement import disagreements
from .cells import CONNECTIONS, PATIENCE, Cell, load_cell, login_and_me, rate_cell, run_rounds
from .processes import Server, memory_mib
from .report import say
from .stage import Generator, Stage
from .workloads import WORKLOADS
from .world import TOWN, populate
from .yardsticks import SCRIPTS, Psycopg2Loop, bcrypt_rate, pgbench, wrk

ROUTES = tuple(route for route in WORKLOADS if route != "mix_without_login")
PEER_ROUTES = ("me", "pull", "push", "refresh", "recent")
KLEIN_ROUTES = ("health", "me", "pull", "fetch")


def main() -> None:
    """Run the benchmark."""
    arguments = parse()
    with Stage(TOWN) as stage:
        say("starting")
        other = stage.measure_starts()
        two = stage.open(workers=2)
        other["load_seconds"] = stage.load_seconds
        one = stage.solisync()
        peer = stage.module("bench.peer_fastapi", "/health")
        klein = stage.module("bench.klein_routes", "/health")
        if wrong := disagreements(one.port, peer.port):
            raise SystemExit("FastAPI answers differently:\n" + "\n".join(wrong))
        populate(stage.dsn, TOWN)
        generator = stage.generator()
        wanted = list(arguments.only)
        say("counting round trips")
        trips = {"solisync": stage.round_trips(generator, wanted)}
        compared = [route for route in PEER_ROUTES if route in wanted]
        trips["FastAPI"] = stage.round_trips(generator, compared, module="bench.peer_fastapi")
        cells = make_cells(stage, generator, one=one, two=two, peer=peer, klein=klein)
        chosen = [cell for cell in cells if cell.route.split()[0] in wanted]
        rows = run_rounds(chosen, arguments.rounds, arguments.seconds, say)
        for row in rows:
            if row["route"] in trips.get(row["server"], {}):
                row["round_trips"] = trips[row["server"]][row["route"]]
        if arguments.mixed:
            say(f"{arguments.mixed} mixed requests")
            load = {"route": "mix_without_login", "port": one.port, "connections": CONNECTIONS}
            generator.measure([load], 1.0, most=arguments.mixed)
            other |= {"mixed": arguments.mixed, "mixed_mib": memory_mib(one.pid) - other["idle_mib"]}
        other["peak_mib"] = memory_mib(one.pid, "VmHWM")
        other["peer_peak_mib"] = memory_mib(peer.pid, "VmHWM")
    results = [ratio for ratio in report.ratios(rows, other) if not math.isnan(ratio.value)]
    print(report.text(rows, other, results))
    report.write(arguments.json, rows, other, results)


def make_cells(
    stage: Stage, generator: Generator, *, one: Server, two: Server, peer: Server, klein: Server
) -> list[Cell]:
    """List the measurements of one round: every server with its routes, and the yardsticks."""

    def loads(name: str, server: Server, routes: tuple[str, ...], prefix: str = "") -> list[Cell]:
        return [load_cell(generator, name, server, route, stage.database_pids, prefix=prefix) for route in routes]

    cells = loads("solisync", one, ROUTES) + loads("2 workers", two, ROUTES) + loads("FastAPI", peer, PEER_ROUTES)
    cells += loads("FastAPI, plain", peer, PEER_ROUTES, "/plain") + loads("Klein", klein, KLEIN_ROUTES)
    program = stage.program("pgbench")
    loop = Psycopg2Loop(stage.socket_dir, stage.world)
    for route in SCRIPTS:
        cells.append(rate_cell("pgbench", route, partial(pgbench, program, stage.socket_dir, TOWN, route)))
        cells.append(rate_cell("psycopg2", route, partial(loop.rate, route)))
    if shutil.which("wrk"):  # the same route once more, to see whether the load generator is the bottleneck
        cells.append(rate_cell("Klein, by wrk", "health", partial(wrk, klein.port, "/health", CONNECTIONS)))
    cells.append(rate_cell("bcrypt", "login", lambda seconds: bcrypt_rate(seconds * PATIENCE)))
    cells.append(login_and_me(generator, one))
    return cells


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each cell is measured in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mixed", type=int, default=0, metavar="N", help="see how memory grows in N mixed requests")
    parser.add_argument("--only", nargs="*", default=ROUTES, choices=ROUTES, metavar="ROUTE", help="only these routes")
    parser.add_argument("--json", type=Path, default=Path(".dev/bench.json"), help="where the figures go")
    return parser.parse_args()


if __name__ == "__main__":
    main()
