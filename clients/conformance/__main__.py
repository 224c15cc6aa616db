"""Run scenarios with a driver, and print a table of the results: `python -m clients.conformance -- PROGRAM`."""

import argparse
import asyncio
import contextlib
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .device import Drivers
from .made_up import made_up
from .scenario import run
from .stage import Stage, staged
from .world import Result

FILE = Path(__file__).with_name("scenarios.json")
WIDTH = 4  # scenarios at the same time
PROGRESS = 100  # scenarios between two lines about the progress


def is_killing(part: Any) -> bool:
    """Return whether a part of a scenario kills the service or its database, which others must not share then."""
    if isinstance(part, dict):
        if part.get("do") in ("kill_service", "kill_database", "backup", "restore") or part.get("what") in (
            "service",
            "database",
        ):
            return True
        part = [*part.values()]
    return isinstance(part, list) and any(map(is_killing, part))


async def play(scenarios: list[dict[str, Any]], program: list[str], *, trace: bool, show: bool) -> list[Result]:
    """Run scenarios, several at the same time; those that kill the service run one by one on another one."""
    killing = [scenario for scenario in scenarios if is_killing(scenario)]
    others = [scenario for scenario in scenarios if not is_killing(scenario)]
    results: list[Result] = []
    drivers = Drivers(program, trace=trace)
    with TemporaryDirectory(prefix="solisync devices ", ignore_cleanup_errors=True) as name:

        async def work(waiting: list[dict[str, Any]], stage: Stage) -> None:
            while waiting:
                scenario = waiting.pop(0)
                result = await run(scenario, stage, drivers, Path(name))
                results.append(result)
                if show or result.wrong:
                    print(line_of(result), flush=True)
                if len(results) % PROGRESS == 0:
                    print(f"{len(results)} of {len(scenarios)}", file=sys.stderr)

        async def on_stage(waiting: list[dict[str, Any]], width: int) -> None:
            if waiting:
                async with staged() as stage:
                    await asyncio.gather(*(work(waiting, stage) for _ in range(width)))

        try:
            await asyncio.gather(on_stage(others, 1 if trace else WIDTH), on_stage(killing, 1))
        finally:
            await drivers.end()
    return results


def line_of(result: Result) -> str:
    """Return a line of the table."""
    verdict = "wrong" if result.wrong else "left out" if result.left_out else "ok"
    why = "; ".join(result.wrong) or result.left_out or ""
    return f"{verdict:8} {result.seconds:5.1f} s  {result.name}{': ' if why else ''}{why}"


def summary(results: list[Result]) -> str:
    """Return the sums of all results."""
    sums = {
        name: sum(getattr(result, name) for result in results)
        for name in ("games", "faults", "lost", "doubled", "logins_lost")
    }
    good = sum(not result.wrong and not result.left_out for result in results)
    left_out = sum(result.left_out is not None for result in results)
    return (
        f"{len(results)} scenarios: {good} ok, {len(results) - good - left_out} wrong, {left_out} left out."
        f" {sums['games']} games, {sums['faults']} faults: {sums['lost']} lost, {sums['doubled']} doubled,"
        f" {sums['logins_lost']} logins lost"
    )


def main() -> int:
    """Run the scenarios that the options name; return 1 if any went wrong."""
    parser = argparse.ArgumentParser(prog="python -m clients.conformance", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="run the scenarios whose name contains this text")
    parser.add_argument("--short", action="store_true", help="run a dozen scenarios, in some seconds")
    parser.add_argument("--random", type=int, metavar="N", help="run N made-up scenarios instead of the named ones")
    parser.add_argument("--seed", type=int, default=1, help="the first number of the made-up scenarios (default 1)")
    parser.add_argument("--trace", action="store_true", help="print all commands, and the driver's standard error")
    parser.add_argument("program", nargs="+", help="the driver, after --")
    options = parser.parse_args()
    if options.random is None:
        scenarios = json.loads(FILE.read_text("utf-8"))
    else:
        scenarios = [made_up(seed) for seed in range(options.seed, options.seed + options.random)]
    if options.short:
        scenarios = [scenario for scenario in scenarios if scenario.get("short")]
    if options.only:
        scenarios = [scenario for scenario in scenarios if options.only in scenario["name"]]
    if options.trace:
        print(json.dumps(scenarios, indent=1), file=sys.stderr)
    results = asyncio.run(play(scenarios, options.program, trace=options.trace, show=options.random is None))
    print(summary(results))
    return 1 if any(result.wrong for result in results) or not results else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
