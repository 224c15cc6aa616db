"""What entry points need first: the reactor, with its timers on the monotonic clock, and the standard streams.

Twisted's reactors measure with `time.time`. That clock steps when NTP first corrects it, when a virtual machine resumes
and when somebody sets the date: back by an hour, no timer would fire for that hour, and no lost connection to the
database would be replaced; forward, every deadline would be over at once. Wall time is for dates alone: the expiry of
tokens, the log, what is stored.
"""

import os
import sys
import time
from typing import Any


def monotonic_reactor() -> Any:
    """The global reactor, on the monotonic clock. Entry points call this before anything has a timer."""
    from twisted.internet import reactor  # not at import: twistd first installs the reactor of its --reactor option

    reactor.seconds = time.monotonic  # type: ignore[method-assign]
    return reactor


def open_missing() -> None:
    """Open /dev/null for each standard stream that is closed.

    Python leaves None in its place, and the next file or socket would get its number.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # its number is the lowest that is free: this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
