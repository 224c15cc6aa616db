"""`make bench-instructions`: the number of instructions that the service executes for a request of each route.

It counts the instructions of the service's process in user space, without the kernel and PostgreSQL. The counts don't
depend on other load of the machine and repeat within one percent. So they show the cost of a change to the code, which
would be lost in the noise of times. docs/performance.md "Instructions" explains the counting.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from .callgrind import Callgrind, require_valgrind
from .report import say
from .stage import Stage
from .workloads import WORKLOADS
from .world import World

ROUTES = ("health", "me", "pull", "push", "refresh")
UNSUITABLE = ("login", "mix")  # bcrypt takes too long under valgrind; the mix is random
WORLD = World(players=25, replays=25)
BATCHES = 5  # of each route; their spread shows how well the counts repeat
WARM_UP = 2 * WORLD.players  # requests of each route, after which the service has cached every access token
SETTLE = 10  # requests after counting is switched on, so that every connection to the database is in use again
IDLE_SECONDS = 5.0
ALONE_SECONDS = 20.0  # after this, the service knows that no other process needs its notifications


class Count(NamedTuple):
    """The instructions for a request in thousands, and the spread of the batches in percent."""

    thousands: float
    spread: float


def main() -> None:
    """Run the benchmark."""
    arguments = parse()
    require_valgrind()
    measured = version_of(arguments.python)
    say(f"measuring {measured}")
    random.seed(7)
    with Stage(WORLD, arguments.python) as stage:
        owner = stage.open()
        say("starting the service under valgrind")
        service = Callgrind(stage)
        stage.callback(owner.go_on)
        owner.pause()
        for route in arguments.routes * WARM_UP:
            service.request(route)
        say(f"waiting for {ALONE_SECONDS:g} s")
        time.sleep(ALONE_SECONDS)
        idle = idle_rate(service)
        counts = {}
        for route in arguments.routes:
            say(f"counting {route}")
            counts[route] = count(service, route, arguments.requests, idle)
    before = json.loads(arguments.against.read_text("utf-8"))["thousands"] if arguments.against else {}
    print(table(counts, before))
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "measured": measured,
        "requests": arguments.requests,
        "thousands": {route: round(each.thousands, 1) for route, each in counts.items()},
        "spread_percent": {route: round(each.spread, 2) for route, each in counts.items()},
    }
    arguments.json.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    routes = [route for route in WORKLOADS if route not in UNSUITABLE]
    parser.add_argument("--routes", nargs="+", default=ROUTES, choices=routes, metavar="ROUTE", help="only these")
    parser.add_argument("--requests", type=int, default=200, metavar="N", help="the number for each route (200)")
    parser.add_argument(
        "--python",
        type=lambda text: Path(text).absolute(),  # not resolved, because the link leads to the environment
        default=Path(sys.executable),
        metavar="FILE",
        help="the interpreter of another environment, whose solisync is measured",
    )
    parser.add_argument("--json", type=Path, default=Path(".dev/bench-instructions.json"), help="where the counts go")
    parser.add_argument("--against", type=Path, metavar="FILE", help="print the ratio to the counts of an earlier run")
    return parser.parse_args()


def version_of(python: Path) -> str:
    """Describe which solisync an interpreter runs: its directory, and the version of Python."""
    program = "import platform, solisync; print(solisync.__path__[0], 'on Python', platform.python_version())"
    return subprocess.run([python, "-P", "-c", program], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def idle_rate(service: Callgrind) -> float:
    """Count the instructions that the service's timers execute in a second without requests."""
    with service.counting():
        service.take_count()
        began = time.monotonic()
        time.sleep(IDLE_SECONDS)
        return service.take_count() / (time.monotonic() - began)


def count(service: Callgrind, route: str, requests: int, idle: float) -> Count:
    """Count the instructions for a request of a route, less `idle` instructions for each second."""
    batches = []
    size = max(1, requests // BATCHES)
    with service.counting():
        for _ in range(SETTLE):
            service.request(route)
        service.take_count()
        for _ in range(BATCHES):
            began = time.monotonic()
            for _ in range(size):
                service.request(route)
            elapsed = time.monotonic() - began
            batches.append((service.take_count() - idle * elapsed) / size)
    mean = sum(batches) / BATCHES
    return Count(mean / 1_000, (max(batches) - min(batches)) / mean * 100)


def table(counts: dict[str, Count], before: dict[str, float]) -> str:
    """Format the counts, with ratios to the counts in `before`."""
    lines = ["route        thousand instructions  spread" + ("   before   ratio" if before else "")]
    for route, (thousands, spread) in counts.items():
        line = f"{route:12} {thousands:21,.1f}  {spread:5.1f}%"
        if route in before:
            line += f" {before[route]:8,.1f}   {thousands / before[route]:5.3f}"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    main()
