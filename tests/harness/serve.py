"""The program of a service under test: bcrypt at its lowest cost, and no housekeeping."""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from solisync import housekeeping, worker
from solisync.players import history
from solisync.process.daemon import run
from solisync.process.entry_point import monotonic_reactor
from solisync.service import make_daemon, make_service
from solisync.settings.settings import ServingSettings

COST = 4
AHEAD = os.environ.get("CLOCK_OF_TEST")  # a file with the seconds by which the service's clock is ahead


def now():
    """The time for the service: that of the test's days if the test has such a file."""
    return datetime.now(UTC) + timedelta(seconds=float(Path(AHEAD).read_text("utf-8")) if AHEAD else 0)


def main():
    """Serve with the settings of the environment."""
    housekeeping.EVERY_SECONDS = 3_600.0  # a round would delete what another test on the same database counts
    history.EVERY_SECONDS = 3_600.0  # a round would add rows that another test counts
    settings = ServingSettings.from_environ(os.environ)
    reactor = monotonic_reactor()
    if sys.argv[1:] == ["worker"]:
        worker.main(COST)
    elif settings.workers > 1:
        command = (sys.executable, __file__, "worker")
        run(
            make_daemon(settings, reactor, os.environ, command=command),
            reactor,
            log_format=settings.log_format,
            log_level=settings.log_level,
        )
    else:
        run(
            make_service(settings, reactor, now=now, bcrypt_cost=COST),
            reactor,
            log_format=settings.log_format,
            log_level=settings.log_level,
        )


if __name__ == "__main__":
    main()
