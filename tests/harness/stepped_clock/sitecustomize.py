"""Python imports this at its start from PYTHONPATH: `time.time` is off by the seconds in the file STEPPED_CLOCK names.

See tests/process/test_clock.py. Before anything else is imported, since Twisted keeps the function, not the module.
"""

import os
import time

_time = time.time
_file = os.environ["STEPPED_CLOCK"]


def _stepped():
    with open(_file) as file:
        return _time() + float(file.read() or 0)


time.time = _stepped
