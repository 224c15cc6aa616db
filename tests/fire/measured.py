"""Memory and time of a command, measured in a separate process."""

import os
import subprocess
import sys
import time

from tests.harness.entry_points import SOLISYNC
from tests.harness.processes import clean_environment

# A separate process, so that the command is its only child.
MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, used.ru_maxrss // 1024, used.ru_utime + used.ru_stime)
"""


def measure(dsn, *words):
    """Run a command without output; return its peak memory in MiB, seconds, and seconds of processor time."""
    began = time.monotonic()
    command = [sys.executable, "-c", MEASURE, *map(os.fspath, SOLISYNC), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(DATABASE_URL=dsn), check=True)
    status, mebibytes, processor = done.stdout.split()
    assert (status, done.stderr) == ("0", "")
    return int(mebibytes), time.monotonic() - began, float(processor)
