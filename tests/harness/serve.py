"""The service in a process of its own, as the tests need it: bcrypt at its lowest cost, all else as in production."""

import os
import sys

from solisync import worker
from solisync.process.clock import monotonic_reactor
from solisync.process.daemon import run
from solisync.service import make_daemon, make_service
from solisync.settings import ServingSettings

COST = 4


def main():
    """Serve, as the environment says."""
    settings = ServingSettings.from_environ(os.environ)
    reactor = monotonic_reactor()
    if sys.argv[1:] == ["worker"]:
        worker.main(COST)
    elif settings.workers > 1:
        command = (sys.executable, __file__, "worker")
        run(make_daemon(settings, reactor, os.environ, command=command), reactor, log_format=settings.log_format)
    else:
        run(make_service(settings, reactor, bcrypt_cost=COST), reactor, log_format=settings.log_format)


if __name__ == "__main__":
    main()
