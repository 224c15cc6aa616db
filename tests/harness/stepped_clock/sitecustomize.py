"""Python imports this at its start from PYTHONPATH: `time.time` is off by the seconds in the file STEPPED_CLOCK names.

Without that variable it is right, as in the fork server, from which the processes with such a clock are forked.

See tests/process/test_clock.py. Before anything else is imported, since Twisted keeps the function, not the module.
"""

import os
import time

_time = time.time


def _stepped():
    if (name := os.environ.get("STEPPED_CLOCK")) is None:
        return _time()
    with open(name) as file:
        return _time() + float(file.read() or 0)


time.time = _stepped
