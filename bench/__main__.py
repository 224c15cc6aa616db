"""`make bench`: throughput, latency and CPU time of each route, as a table and as JSON.

It compares six routes with FastAPI, and logins with bcrypt alone, which limits them.
"""

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import bcrypt

from .agreement import disagreements
from .cells import Cell, Figures, load_cell
from .cores import pinned
from .pairs import SHORT, Plan
from .report import Report, Result, say
from .stage import Stage
from .workloads import WORKLOADS
from .world import PASSWORD, TOWN, populate

PEER_ROUTES = ("me", "pull", "push", "refresh", "recent", "games", "games_100")
HASHING = Plan(seconds=4.0, fewest=4, most=8)  # there are only a few logins a second


def main() -> None:
    """Run the benchmark."""
    arguments = parse()
    report = Report()
    with Stage(TOWN) as stage:
        say("starting")
        report.other = stage.measure_starts()
        stage.open()
        generator, solisync, fastapi = stage.generator(), stage.solisync(), stage.fastapi()
        if wrong := disagreements(stage.dsn, solisync.port, fastapi.port):
            raise SystemExit("FastAPI answers differently:\n" + "\n".join(wrong))
        populate(stage.dsn, TOWN)
        alone = []
        for route in arguments.only:
            mine = load_cell(generator, "solisync", solisync, route, stage.database_pids)
            if route in PEER_ROUTES:
                peer = load_cell(generator, "FastAPI", fastapi, route, stage.database_pids)
                # FastAPI also refreshes with a single statement, which asyncpg sends with less work.
                least = 0.9 if route == "refresh" else 1.0
                with pinned(lambda: ([solisync.pid, fastapi.pid], stage.database_pids(), [generator.pid])):
                    report.compare(mine, peer, SHORT, rate=least, cpu=0.8)
            elif route == "login":
                limit = Cell(server="bcrypt", route="login", open=lambda: nullcontext(bcrypt_alone))
                report.compare(mine, limit, HASHING, rate=0.95)
            else:
                alone.append(mine)
        report.measure(alone, rounds=3, seconds=2.0)
    report.results += [
        Result("seconds from the command to ready", report.other["start_seconds"], 1.5, at_most=True),
        Result("MiB of an idle process", report.other["idle_mib"], 70, at_most=True),
    ]
    report.show(arguments.json)


def bcrypt_alone(seconds: float) -> Figures:
    """Verify passwords on all cores for `seconds`; the rate is in verifications a second."""
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(12))

    def verify(core: int) -> float:
        count, began = 0, time.monotonic()
        while (elapsed := time.monotonic() - began) < seconds:
            bcrypt.checkpw(PASSWORD.encode(), hashed)
            count += 1
        return count / elapsed

    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as threads:
        return {"rate": sum(threads.map(verify, range(cores))), "errors": 0}


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    routes = tuple(WORKLOADS)
    parser.add_argument("--only", nargs="*", default=routes, choices=routes, metavar="ROUTE", help="only these routes")
    parser.add_argument("--json", type=Path, default=Path(".dev/bench.json"), help="where the figures go")
    return parser.parse_args()


if __name__ == "__main__":
    main()
