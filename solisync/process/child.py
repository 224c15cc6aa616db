"""A child process, seen from its parent."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import cast

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure


class Child(ProcessProtocol):
    """A child process, which runs from `start` until it ends.

    `ready` fires with True when a subclass calls `get_ready`, or with False if the process ends before. `ended` fires
    with the exit status, or with minus the number of the signal that killed the process. Neither Deferred ever fails.
    """

    transport: IProcessTransport

    def __init__(self) -> None:
        self.pid = 0
        self.ready: Deferred[bool] = Deferred()
        self.ended: Deferred[int] = Deferred()

    def start(
        self,
        reactor: ReactorBase,
        command: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Mapping[int, str | int],
    ) -> None:
        """Start the program; `descriptors` are the child's, as `childFDs` of spawnProcess."""
        self.pid = reactor.spawnProcess(  # type: ignore[attr-defined]
            self, command[0], command, env=environment, childFDs=descriptors
        ).pid

    def get_ready(self) -> None:
        """Fire `ready`, once."""
        if not self.ready.called:
            self.ready.callback(True)

    def signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        with suppress(ProcessExitedAlready):
            self.transport.signalProcess(number)

    def processEnded(self, reason: Failure) -> None:
        """Fire `ended`, and `ready` if it hasn't fired."""
        if not self.ready.called:
            self.ready.callback(False)
        end = cast(ProcessTerminated | ProcessDone, reason.value)
        self.ended.callback(-end.signal if end.signal else end.exitCode or 0)


def ending(status: int) -> str:
    """A result of `ended` in words."""
    return f"by signal {-status}" if status < 0 else f"with status {status}"
