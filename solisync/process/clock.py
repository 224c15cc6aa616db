"""The reactor of a process, with its timers on the monotonic clock.

Twisted's reactors measure with `time.time`. That clock steps when NTP first corrects it, when a virtual machine resumes
and when somebody sets the date: back by an hour, no timer would fire for that hour, and no lost connection to the
database would be replaced; forward, every deadline would be over at once. Wall time is for dates alone: the expiry of
tokens, the log, what is stored.
"""

import time
from typing import Any


def monotonic_reactor() -> Any:
    """The global reactor, on the monotonic clock. Entry points call this before anything has a timer."""
    from twisted.internet import reactor  # not at import: twistd first installs the reactor of its --reactor option

    reactor.seconds = time.monotonic  # type: ignore[method-assign]
    return reactor
