"""Run a service with workers, and replace them when a file of solisync/ or of the client changes: `reload.py COMMAND…`.

New workers reread the pages, the code and the settings. If they can't start, the old workers continue.
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
    """The time of the last change of each file."""
    found = {}
    for file in (*Path("solisync").rglob("*.*"), *Path("clients/javascript/src").glob("*")):
        if file.suffix != ".pyc":
            with suppress(FileNotFoundError):  # an editor is replacing the file
                found[file] = file.stat().st_mtime_ns
    return found


signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the service inherits this, until it handles the signal
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
