"""A module that Python imports when it starts: it changes `time.time` by the seconds in the file STEPPED_CLOCK names.

Without that variable `time.time` is right, as in the fork server, which forks the processes with such a clock.

The module must run before any other import, because Twisted keeps the function instead of the module. See
tests/process/test_clock.py.
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
