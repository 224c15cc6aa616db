"""The commands with which an operator starts solisync, and starting a service with each of them."""

import contextlib
import sys

import pytest_twisted
from twisted.internet.defer import Deferred

from tests.harness.constants import BIN, NO_DATA_DIR, ROOT, SECRET
from tests.harness.processes import free_port, launching
from tests.harness.service import environment, ready

SOLISYNC = (BIN / "solisync",)
TWISTD = (BIN / "twistd", "-n", "--pidfile=", "solisync")
TAC = (BIN / "twistd", "--pidfile=", "-ny", ROOT / "solisync.tac")
MODULE = (sys.executable, "-m", "solisync")
CHECKER = (sys.executable, "-P", str(ROOT / "tests" / "harness" / "checker.py"))
BEGIN = (sys.executable, ROOT / "tests" / "harness" / "begin.py")
SERVE = (sys.executable, ROOT / "tests" / "harness" / "serve.py")


def anew(command):
    """The same command in a new interpreter instead of a forked one: see tests/harness/forking.py."""
    return (sys.executable, *command)


def start(launch, *words, data_dir=None, dsn=None, endpoint=None, **variables):
    """Start a service with one of the commands, on a new port unless it gets an `endpoint`."""
    port = free_port()
    given = {"JWT_SECRET": SECRET, "SOLISYNC_TRUSTED_PROXIES": "127.0.0.1", "SOLISYNC_DATA_DIR": NO_DATA_DIR}
    given["SOLISYNC_LISTEN"] = endpoint or f"tcp:{port}:interface=127.0.0.1"
    if data_dir is not None:
        given["SOLISYNC_DATA_DIR"] = str(data_dir)
    if dsn is not None:
        given["DATABASE_URL"] = dsn
    return launch(*words, port=port, dsn=dsn, **given | variables)


def launch_service(launch, dsn, **variables):
    """Start the service with fast bcrypt on a database, on a new port."""
    port = free_port()
    listen = f"tcp:{port}:interface=127.0.0.1"
    return launch(*SERVE, port=port, dsn=dsn, **environment(dsn, SOLISYNC_LISTEN=listen, **variables))


@contextlib.contextmanager
def serving(reactor, logs, dsn, **variables):
    """Run the service in a separate process during the block, after which it must stop cleanly."""
    with launching(logs) as launch:
        process = launch_service(launch, dsn, **variables)
        pytest_twisted.blockon(Deferred.fromCoroutine(ready(reactor, process.client())))
        yield process
        assert process.stop() == 0
        assert "Traceback" not in process.log
