"""The entry point of a worker process: the whole service, on a socket inherited from its parent, the Supervisor."""

import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.abstract import FileDescriptor
from twisted.internet.main import CONNECTION_DONE
from twisted.python.failure import Failure

from . import __version__
from .access import passwords
from .process import shared_metrics
from .process.daemon import run
from .process.entry_point import monotonic_reactor
from .service import make_service
from .settings.settings import ServingSettings
from .supervisor import ADMIN_SOCKET, GIVE_WAY, LIFELINE, READY, SOCKET


class _Lifeline(FileDescriptor):
    """Standard input, which ends when the parent closes it to stop this worker, and when the parent dies.

    Until then the parent sends on it whether this worker should `give_way` to others at the port.
    """

    reactor: Any
    give_way: Callable[[bool], None]

    def fileno(self) -> int:
        return LIFELINE

    def doRead(self) -> Exception | None:
        words = os.read(LIFELINE, 100)
        if not words:
            return CONNECTION_DONE
        self.give_way(words.endswith(GIVE_WAY))
        return None

    def connectionLost(self, reason: Failure) -> None:
        os.kill(os.getpid(), signal.SIGTERM)  # so that this stop and one by SIGTERM are the same


def main(bcrypt_cost: int = passwords.COST) -> None:
    """Serve until a signal, or until standard input ends."""
    reactor = monotonic_reactor()
    # A terminal sends these signals to all processes of its foreground group, but only the parent should act on them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    settings = ServingSettings.from_environ(os.environ)
    if shared_metrics.VARIABLE in os.environ:
        shared_metrics.share(os.environ[shared_metrics.VARIABLE])
    service = make_service(
        settings,
        reactor,
        inherited=socket.socket(fileno=SOCKET),
        admin_inherited=None if settings.admin_listen is None else socket.socket(fileno=ADMIN_SOCKET),
        when_open=lambda: os.close(READY) if os.write(READY, __version__.encode()) else None,
        bcrypt_cost=bcrypt_cost,
    )
    lifeline = _Lifeline(reactor)
    lifeline.give_way = service.give_way
    lifeline.startReading()
    run(service, reactor, log_format=settings.log_format, log_level=settings.log_level)


if __name__ == "__main__":
    main()
