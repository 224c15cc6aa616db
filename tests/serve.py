"""The service in a process of its own, as the tests need it: bcrypt at its lowest cost, all else as in production."""

import os
import sys

from twisted.internet import reactor
from twisted.logger import globalLogBeginner, textFileLogObserver

from solisync.service import make_service
from solisync.settings import Settings

if __name__ == "__main__":
    globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stderr)], redirectStandardIO=False)
    service = make_service(Settings.from_environ(os.environ), reactor, bcrypt_cost=4)
    service.privilegedStartService()
    service.startService()
    reactor.addSystemEventTrigger("before", "shutdown", service.stopService)
    reactor.run()
