"""solisync as a classic Twisted application: `twistd -ny solisync.tac`, settings from the environment."""

import os

from twisted.application.service import Application

from solisync.tap import service_from_environment

application = Application("solisync")
service_from_environment(os.environ).setServiceParent(application)
