"""`make test-repeat`: repeats the tests beside busy loops, to find a test that fails by chance.

Without `--only` each round is a whole run, like `make test`. With `--only` one process runs each of the named tests
many times, alone. At the end comes a table of the tests that failed and how often; the exit status is 1 if any did.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from tests.harness.constants import ROOT

BUSY_LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"


def main():
    """Run the tests, and print the failures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5, metavar="N", help="how often each test runs (default 5)")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="busy loops beside the tests (default 0)")
    parser.add_argument("--only", nargs="+", metavar="TEST", help="files or ids of tests to run, instead of all")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="solisync-repeat-"))
    failed, ran = Counter(), 0
    with busy_loops(options.busy):
        whole = ["-n", "auto", "--dist", "worksteal"]
        rounds = ["--times", str(options.times), *options.only] if options.only else whole
        for number in range(1 if options.only else options.times):
            began = time.monotonic()
            status, names, failures = one_round(directory / f"{number + 1}", rounds)
            ran += names
            failed.update(failures)
            if status and not failures:
                failed["pytest itself"] += 1
            print(
                f"round {number + 1}: {names} ran, {len(failures)} failed, {time.monotonic() - began:.0f} s", flush=True
            )
    print(f"{ran} ran, {sum(failed.values())} failed, {options.busy} busy loops; the output is in {directory}")
    for name, count in failed.most_common():
        print(f"{count:5} × {name}")
    sys.exit(1 if failed else 0)


@contextlib.contextmanager
def busy_loops(count):
    """Keep this number of processes busy; they also end with this process."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def one_round(prefix, words):
    """Run pytest once; return its exit status, the number of tests, and the ids of failed tests, repetitions alike."""
    report = prefix.with_suffix(".xml")
    with prefix.with_suffix(".log").open("wb") as log:
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *words]
        status = subprocess.run(command, stdout=log, stderr=log, cwd=ROOT, env=os.environ).returncode
    if not report.exists():
        return status, 0, []
    cases = list(ElementTree.parse(report).iter("testcase"))
    broken = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return status, len(cases), [f"{case.get('classname')}::{case.get('name')}" for case in broken]


if __name__ == "__main__":
    main()
