"""`make bench-growth`: throughput of each route with a million players in the database, beside a thousand."""

import argparse
from contextlib import ExitStack
from pathlib import Path

from . import report
from .cells import load_cell, run_rounds
from .processes import memory_mib
from .report import Ratio, say
from .stage import Stage
from .workloads import WORKLOADS
from .world import World

VILLAGE = World(players=1_000, document_bytes=500, replays=1_000, replay_bytes=1_000)
ROUTES = tuple(route for route in WORKLOADS if route not in ("login", "mix"))  # those wait for bcrypt
SHARE = 0.85  # of the throughput with few players: what is promised with many


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--players", type=int, default=1_000_000)
    parser.add_argument("--replays", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each cell is measured in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=ROUTES, choices=ROUTES, metavar="ROUTE", help="only these routes")
    parser.add_argument("--json", type=Path, default=Path(".dev/bench-growth.json"), help="where the figures go")
    arguments = parser.parse_args()
    country = World(players=arguments.players, document_bytes=500, replays=arguments.replays, replay_bytes=1_000)
    cells, other, services = [], {}, {}
    with ExitStack() as stack:
        for world in (VILLAGE, country):
            name = f"{world.players} players"
            say(f"loading {name}")
            stage = stack.enter_context(Stage(world))
            service = stage.open(workers=1)
            other[f"seconds to load {name}"] = stage.load_seconds
            generator = stage.generator()
            cells += [load_cell(generator, name, service, route, stage.database_pids) for route in arguments.only]
            services[name] = service
        rows = run_rounds(cells, arguments.rounds, arguments.seconds, say)
        other |= {f"peak MiB with {name}": memory_mib(service.pid, "VmHWM") for name, service in services.items()}
    rates = {(row["server"], row["route"]): row["rate"] for row in rows}
    small, large = services
    what = f"throughput with {large} to that with {small}"
    results = [
        Ratio(f"{route}: {what}", rates[large, route] / rates[small, route], SHARE) for route in sorted(arguments.only)
    ]
    print(report.text(rows, other, results))
    report.write(arguments.json, rows, other, results)


if __name__ == "__main__":
    main()
