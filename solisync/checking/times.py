"""How long checks and the looks at their queues take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTimes:
    """The times of the queues of checks, in seconds."""

    claim: float = 30.0  # how long a claim holds that nobody renews
    renew: float = (
        10.0  # how often a claim is renewed; a checker of the lowest priority takes its time on a busy machine
    )
    literal: float = 60.0  # how long a literal check may take before its checker is taken to hang, and is killed
    search: float = 600.0  # the same for a search: 5 s of processor time at a hundredth of a busy core
    poll: float = 2.0  # how often to look for work while there is none, and nobody says that there is
    ready: float = 30.0  # how long a new process may take to begin
    restart: float = 2.0  # the pause before another process takes the place of one that ended
    retry: float = 1.0  # the pause after a failure of the database
    look: float = 10.0  # how often to look at the length of the queues
    look_soon: float = 1.0  # the same while old replays are checked


TIMES = QueueTimes()
