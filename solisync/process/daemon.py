"""What the root of a service tree can do, be it one process or the parent of several: end the process by itself."""

import atexit
import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

from twisted.application.service import Service
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.logger import Logger, globalLogBeginner
from twisted.python.failure import Failure

from ..errors import FatalError
from . import listening, logs
from .scrape import scrape_site

# Almost everything that a request leaves behind has no cycles. At Python's own thresholds the search for them takes a
# twelfth of the time of a push.
GC_THRESHOLDS = (5_000, 10, 10)


class Daemon(Service):
    """A service that listens; `failure` holds the reason when it had to stop by itself."""

    _log = Logger()
    _port: IListeningPort | None = None
    _scrapes: IListeningPort | None = None
    _stopping = False
    failure: FatalError | None = None

    def __init__(self, reactor: ReactorBase) -> None:
        self._reactor = reactor

    @property
    def address(self) -> IAddress:
        """Where the service listens, once it does."""
        assert self._port is not None
        return self._port.getHost()

    def _listen_for_scrapes(self, description: str | None, exposition: Callable[[], bytes]) -> None:
        if description is not None:
            self._scrapes = listening.listen(self._reactor, description, scrape_site(exposition))

    async def _stop_listening_for_scrapes(self) -> None:
        if self._scrapes is not None:
            await maybeDeferred(self._scrapes.stopListening)

    def startService(self) -> None:
        """Start; the base of what each kind of daemon does then."""
        super().startService()
        gc.set_threshold(*GC_THRESHOLDS)

    def stopService(self) -> Deferred[None]:
        """Stop in good order; resolves when that is done."""
        super().stopService()
        self._stopping = True
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        raise NotImplementedError

    def _give_up(self, failure: Failure) -> None:
        if self._stopping or self.failure is not None:  # the reactor can't be stopped twice
            return
        if isinstance(failure.value, FatalError):
            self.failure = failure.value
            self._log.critical("{error}", error=failure.value)
        else:
            self.failure = FatalError("solisync: could not start, see the log")
            self._log.failure("could not start", failure)
        # twistd ends with status 0, or by the signal that stopped it; a supervisor takes both for a success
        atexit.register(_exit_1)
        self._reactor.callWhenRunning(self._reactor.stop)


def run(daemon: Daemon, reactor: ReactorBase, *, log_format: str) -> None:
    """Run a daemon in the foreground, logging to standard error; raises SystemExit when it had to stop by itself."""
    globalLogBeginner.beginLoggingTo([logs.observer(log_format, sys.stderr)], redirectStandardIO=False)
    daemon.privilegedStartService()
    daemon.startService()

    def stop() -> Deferred[None]:
        _be_stopping()
        return daemon.stopService()

    reactor.addSystemEventTrigger("before", "shutdown", stop)
    reactor.callWhenRunning(_hear_one_signal)
    reactor.run()
    if daemon.failure is not None:
        sys.exit(1)  # the log has said why


def _hear_one_signal() -> None:
    """Have each of Twisted's handlers called once: to be stopped twice in one turn is an error to it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        stop = signal.getsignal(number)
        if callable(stop):
            signal.signal(number, partial(_stop_once, stop))


def _stop_once(stop: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
    _be_stopping()
    stop(number, frame)


def _be_stopping() -> None:
    """The next SIGTERM can't hurry a stop; the next Ctrl-C ends the process at once."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # of SIG_IGN Python complains when the next one is there already
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _exit_1() -> None:
    for out in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            out.flush()
    os._exit(1)
