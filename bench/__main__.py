"""`make bench`: throughput, latency and CPU time of every route, as a table and as JSON.

The yardsticks are measured in the same run: pgbench, a psycopg2 loop and bcrypt are upper limits; Klein and FastAPI are
alternatives.
"""

import argparse
import math
import statistics
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from . import report
from .agreement import disagreements
from .cells import CONNECTIONS
from .comparisons import OTHERS, PEER_ROUTES, ROUTES, Comparison, Servers
from .pairs import Pairs, compare
from .processes import memory_mib
from .report import Result, Rows, say
from .stage import Stage
from .world import TOWN, populate


class Run:
    """One run of the benchmark, on processes of its own; the figures of all turns are added to `rows`."""

    def __init__(self, rows: Rows) -> None:
        self.compared: list[tuple[Comparison, Pairs]] = []
        self.trips: dict[str, dict[str, float]] = {}  # to the database, of each server for a request to each route
        self.other: dict[str, float] = {}
        self._rows = rows

    def execute(self, *, routes: Sequence[str], beside: Sequence[str], mixed: int) -> None:
        """Measure these routes, compare them with these servers, and send so many mixed requests at the end."""
        with Stage(TOWN) as stage:
            say("starting")
            self.other |= stage.measure_starts()
            servers = Servers(stage, stage.open(workers=2))
            self.other["load_seconds"] = stage.load_seconds
            if wrong := disagreements(servers.solisync.port, servers.fastapi.port):
                raise SystemExit("FastAPI answers differently:\n" + "\n".join(wrong))
            populate(stage.dsn, TOWN)
            say("counting round trips")
            peers = [route for route in PEER_ROUTES if route in routes]
            self.trips["solisync"] = stage.round_trips(servers.generator, routes)
            self.trips["FastAPI"] = stage.round_trips(servers.generator, peers, module="bench.peer_fastapi")
            for comparison in servers.comparisons():
                if comparison.one.route in routes and comparison.other.server in beside:
                    self._compare(comparison, servers)
            alone = [cell for cell in servers.alone() if cell.route.split(",")[0] in routes]
            self._rows.measure(alone, rounds=3, seconds=2.0)
            if mixed:
                self._mix(servers, mixed)
            self.other["peak_mib"] = memory_mib(servers.solisync.pid, "VmHWM")
            self.other["peer_peak_mib"] = memory_mib(servers.fastapi.pid, "VmHWM")

    def _compare(self, comparison: Comparison, servers: Servers) -> None:
        with servers.pinned() if comparison.pinned else nullcontext():
            pairs = compare(comparison.one, comparison.other, comparison.plan)
        say(f"{comparison}: {pairs.ratio('rate')} in {len(pairs)} pairs")
        self.compared.append((comparison, pairs))
        self._rows.add_pairs(comparison.one, comparison.other, pairs)

    def _mix(self, servers: Servers, most: int) -> None:
        say(f"{most} mixed requests")
        load = {"route": "mix_without_login", "port": servers.solisync.port, "connections": CONNECTIONS}
        with servers.generator.opened(load) as turn:
            turn(math.inf, most=most)
        grown = memory_mib(servers.solisync.pid) - self.other["idle_mib"]
        self.other |= {"mixed": most, "mixed_mib": grown}


def main() -> None:
    """Run the benchmark."""
    arguments = parse()
    gathered = Rows()
    runs = [Run(gathered) for _ in range(arguments.repeat)]
    for run in runs:
        run.execute(routes=arguments.only, beside=arguments.beside, mixed=arguments.mixed)
    rows = gathered.medians()
    for row in rows:
        if row["route"] in runs[0].trips.get(row["server"], {}):
            row["round_trips"] = runs[0].trips[row["server"]][row["route"]]
    other = {name: statistics.median(run.other[name] for run in runs) for name in runs[0].other}
    results: list[Result] = []
    for compared in zip(*(run.compared for run in runs), strict=True):
        (comparison, *_), repeats = zip(*compared, strict=True)
        results += report.ratios(str(comparison), repeats, comparison.rate, comparison.cpu)
    results += report.others(rows, other)
    print(report.text(rows, other, results))
    report.write(arguments.json, rows, other, results)


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--mixed", type=int, default=0, metavar="N", help="see how memory grows in N mixed requests")
    parser.add_argument("--only", nargs="*", default=ROUTES, choices=ROUTES, metavar="ROUTE", help="only these routes")
    parser.add_argument(
        "--beside", nargs="*", default=OTHERS, choices=OTHERS, metavar="SERVER", help=f"only beside these, of {OTHERS}"
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run N times: how far are ratios apart?")
    parser.add_argument("--json", type=Path, default=Path(".dev/bench.json"), help="where the figures go")
    return parser.parse_args()


if __name__ == "__main__":
    main()
