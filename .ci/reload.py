"""Run a service with workers, and replace these when a file of solisync/ has changed: `reload.py COMMAND…`.

New workers read the pages, the code and the settings anew. Those that can't start leave the old ones at work.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 0.5


def state() -> dict[Path, int]:
    """When each file was last written."""
    found = {}
    for file in Path("solisync").rglob("*.*"):
        if file.suffix != ".pyc":
            with suppress(FileNotFoundError):  # an editor has replaced it in this moment
                found[file] = file.stat().st_mtime_ns
    return found


signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as the service begins, until it knows what to do about it
with subprocess.Popen(sys.argv[1:]) as service:
    signal.signal(signal.SIGTERM, lambda *_: service.terminate())
    seen = state()
    try:
        while service.poll() is None:
            time.sleep(LOOK_SECONDS)
            if seen != (seen := state()):
                os.kill(service.pid, signal.SIGHUP)
    except KeyboardInterrupt:  # the service gets it too
        signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.exit(service.returncode)
