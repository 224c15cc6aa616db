"""`make bench-growth`: throughput of each route with a million players, compared with a thousand."""

import argparse
from contextlib import ExitStack
from pathlib import Path

from .cells import Cell, load_cell
from .pairs import SHORT
from .processes import memory_mib
from .report import Report, say
from .stage import Stage
from .workloads import WORKLOADS
from .world import World

VILLAGE = World(players=1_000, replays=1_000)
ROUTES = tuple(route for route in WORKLOADS if route not in ("login", "mix"))  # these wait for bcrypt
SHARE = 0.85  # the promised share of the throughput with few players


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--players", type=int, default=1_000_000)
    parser.add_argument("--replays", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", default=ROUTES, choices=ROUTES, metavar="ROUTE", help="only these routes")
    parser.add_argument("--json", type=Path, default=Path(".dev/bench-growth.json"), help="where the figures go")
    arguments = parser.parse_args()
    country = World(players=arguments.players, replays=arguments.replays)
    report = Report()
    cells: list[list[Cell]] = []
    services = {}
    with ExitStack() as stack:
        for world in (VILLAGE, country):
            name = f"{world.players} players"
            say(f"loading {name}")
            stage = stack.enter_context(Stage(world))
            services[name] = service = stage.open()
            report.other[f"seconds to load {name}"] = stage.load_seconds
            generator = stage.generator()
            cells.append([load_cell(generator, name, service, route, stage.database_pids) for route in arguments.only])
        for small, large in zip(*cells, strict=True):
            report.compare(large, small, SHORT, rate=SHARE)
        report.other |= {
            f"peak MiB with {name}": memory_mib(service.pid, "VmHWM") for name, service in services.items()
        }
    report.show(arguments.json)


if __name__ == "__main__":
    main()
