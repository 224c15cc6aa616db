"""The root of a service tree: the base class of the service in one process, and of the parent of several.

twistd starts such a service itself. The `solisync` command and workers start it by `run`, in the foreground.
"""

import atexit
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from types import FrameType
from typing import Any

from twisted.application.service import Service
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IAddress, IListeningPort, IProtocolFactory
from twisted.logger import Logger, globalLogBeginner
from twisted.python.failure import Failure

from .. import __version__
from ..errors import FatalError
from . import listening, logs
from .metrics import NodeMetrics
from .scrape import scrape_site
from .service_manager import ServiceManager

# Fast path: Python's default thresholds, a tenth of a push, see docs/performance.md. Requests leave hardly any
# reference cycles, so a more frequent search would find nothing.
GC_THRESHOLDS = (5_000, 10, 10)


class Daemon(Service):
    """A service with a listening port; `failure` is the reason if the service had to stop by itself."""

    _log = Logger()
    _port: IListeningPort | None = None
    _scrapes: IListeningPort | None = None
    _admin_port: IListeningPort | None = None
    _stopping = False
    failure: FatalError | None = None
    manager = ServiceManager()

    def __init__(self, reactor: ReactorBase) -> None:
        self._reactor = reactor

    @cached_property
    def _node(self) -> NodeMetrics:
        """The metrics of the node, made at their first use: a worker would add its own to the sum of all workers."""
        return NodeMetrics()

    @property
    def address(self) -> IAddress:
        """The address of the port, once it is open."""
        assert self._port is not None
        return self._port.getHost()

    @property
    def admin_address(self) -> IAddress:
        """The address of the console's port, once it is open."""
        assert self._admin_port is not None
        return self._admin_port.getHost()

    def _listen_for_scrapes(
        self, description: str | None, exposition: Callable[[], bytes], data_dir: Path | None
    ) -> None:
        if description is None:
            return
        if data_dir is not None:
            self._node.watch_disk(data_dir)
        site = scrape_site(lambda: exposition() + self._node.exposition())
        self._scrapes = listening.listen(self._reactor, description, site)

    def _listen_for_admins(
        self,
        description: str | None,
        factory: IProtocolFactory | None,
        *,
        public: bool,
        inherited: socket.socket | None = None,
    ) -> None:
        """Open the console's port, if set; raise FatalError if other machines reach it and it isn't `public`."""
        if description is None or factory is None:
            return
        self._admin_port = port = listening.listen(self._reactor, description, factory, inherited=inherited)
        if not (public or listening.is_private(port)):
            raise FatalError(
                f"solisync: other machines reach {description}: bind the console to a unix socket or a loopback"
                " address, or name the hosts of its HTTPS proxy in SOLISYNC_ADMIN_HOSTS"
            )

    def _log_start(self, text: str, where: str, data_dir: Path | None) -> None:
        """Log the listening address, the URL of the API reference, and the data directory of an embedded database."""
        assert self._port is not None
        self._log.info("solisync {version} listens on {where}{text}", version=__version__, where=where, text=text)
        root = listening.url(self._port, where)
        if root is not None:
            self._log.info("serving {root}, with the API reference at {root}/api/docs", root=root)
        if data_dir is not None:
            self._log.info("the data is in {path}", path=str(data_dir))

    def _on_hangup(self, reload: Callable[[], object]) -> None:
        """Call `reload` on SIGHUP, but stop as on SIGTERM if the signal means that the terminal was closed.

        The kernel sends SIGHUP to the processes in the foreground of a closed terminal. A process started in the
        background, by nohup or by setsid should continue.
        """
        ends_with_terminal = (
            signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _foreground_group() == os.getpgrp()
        )

        def handle() -> None:
            if ends_with_terminal and _foreground_group() is None:
                signal.raise_signal(signal.SIGTERM)
            else:
                reload()

        signal.signal(signal.SIGHUP, lambda *_: self._reactor.callFromThread(handle))

    def _read_certificates(self) -> bool:
        """Read the certificates of `ssl:` endpoints again; return whether there are any."""
        found = [known for port in (self._port, self._scrapes) if (known := listening.certificates(port))]
        for certificates in found:
            try:
                certificates.read()
                self._log.info("read the certificates again, for new connections")
            except ValueError as error:
                self._log.error("can't read the certificates again: {error}; keeping the old ones", error=error)
        return bool(found)

    async def _stop_listening_for_scrapes(self) -> None:
        if self._scrapes is not None:
            await maybeDeferred(self._scrapes.stopListening)

    def startService(self) -> None:
        """Start the service; subclasses extend this."""
        super().startService()
        gc.set_threshold(*GC_THRESHOLDS)

    def stopService(self) -> Deferred[None]:
        """Stop the service gracefully; the Deferred fires when it has stopped."""
        super().stopService()
        self._stopping = True
        self.manager.stopping()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        raise NotImplementedError

    def _give_up(self, failure: Failure) -> None:
        """Log the reason why the service can't continue, and stop the reactor."""
        if self._stopping or self.failure is not None:  # the reactor can't be stopped twice
            return
        if isinstance(failure.value, FatalError):
            self.failure = failure.value
            self._log.critical("{error}", error=failure.value)
        else:
            self.failure = FatalError("solisync: could not start, see the log")
            self._log.failure("could not start", failure)
        # twistd would exit with status 0 or by the signal that stopped it, and supervisors take both for success.
        atexit.register(_exit_1)
        self._reactor.callWhenRunning(self._reactor.stop)


def run(daemon: Daemon, reactor: ReactorBase, *, log_format: str, log_level: str) -> None:
    """Run a daemon in the foreground until it is stopped, logging to standard error.

    Raises FatalError if the daemon can't start, SystemExit if it had to stop by itself.
    """
    globalLogBeginner.beginLoggingTo([logs.observer(log_format, sys.stderr, log_level)], redirectStandardIO=False)
    daemon.privilegedStartService()
    daemon.startService()

    def stop() -> Deferred[None]:
        _ignore_more_signals()
        return daemon.stopService()

    reactor.addSystemEventTrigger("before", "shutdown", stop)
    reactor.callWhenRunning(_handle_one_signal)
    reactor.run()
    if daemon.failure is not None:
        sys.exit(1)  # the log has the reason


def _handle_one_signal() -> None:
    """Call Twisted's signal handlers only once: stopping a reactor that is about to stop is an error."""
    first = threading.Lock()  # a second signal may interrupt the handler of the first one
    for number in (signal.SIGTERM, signal.SIGINT):
        stop = signal.getsignal(number)
        if callable(stop):
            signal.signal(number, partial(_stop_once, first, stop))


def _stop_once(
    first: threading.Lock, stop: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None
) -> None:
    if first.acquire(blocking=False):
        _ignore_more_signals()
        stop(number, frame)


def _ignore_more_signals() -> None:
    """Ignore further SIGTERMs, which can't speed up a stop; a second Ctrl-C ends the process immediately."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # with SIG_IGN, Python prints an error if one has just arrived
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _foreground_group() -> int | None:
    """The foreground process group of the controlling terminal, or None if there is no terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
        try:
            return os.tcgetpgrp(terminal)
        finally:
            os.close(terminal)
    except OSError:
        return None


def _exit_1() -> None:
    for out in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # either end may be closed
            out.flush()
    os._exit(1)
