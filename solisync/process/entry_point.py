"""The first steps of entry points: put the reactor's timers on the monotonic clock, and open the standard streams.

Twisted's reactors use `time.time`, which jumps when NTP first corrects it, when a virtual machine resumes and when an
operator sets the date. After a jump back by an hour, no timer would fire for an hour, and no lost connection to the
database would be replaced. After a jump forward, all deadlines would be over immediately. Wall time is only for dates:
the expiry of tokens, the log and stored data.
"""

import os
import sys
import time
from typing import Any


def monotonic_reactor() -> Any:
    """Return the global reactor, on the monotonic clock. Entry points call this before they set any timer."""
    from twisted.internet import reactor  # here, because twistd first installs its --reactor

    reactor.seconds = time.monotonic  # type: ignore[method-assign]
    return reactor


def open_missing() -> None:
    """Open /dev/null for each standard stream that is closed.

    Python has None for it, and the next file or socket would get its number.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
