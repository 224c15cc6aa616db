"""A process that reads uploaded replays, seen from the service."""

import os
import signal
import sys
from contextlib import suppress

import msgspec
from twisted.internet.base import ReactorBase

from ..process.child import Child
from .messages import Frames, frame

_WORDS_BYTES = 2_000  # of what it writes on standard error, the last is kept


class ReplayReader(Child):
    """Starts with its creation, and ends by `kill` or by itself; `ready` when it takes messages.

    A subclass has `receive`, which is called with the payload of each frame but the first.
    """

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...]) -> None:
        super().__init__()
        self._frames = Frames()
        self._words = b""
        # Nothing of the service's environment, in which there may be secrets: only where the program's modules are.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.start(reactor, command, environment, {0: "w", 1: "r", 2: "r"})

    def send(self, message: msgspec.Struct) -> None:
        """Write a message to its standard input, unless that is closed because the process is about to end."""
        words = frame(msgspec.msgpack.encode(message))
        with suppress(KeyError):  # Twisted has forgotten the pipe
            self.transport.writeToChild(0, words)

    def receive(self, payload: bytes) -> None:
        """Take a message; raises ValueError, MsgspecError or KeyError for what is none."""
        raise NotImplementedError

    def kill(self) -> None:
        """End it at once: it has nothing to lose."""
        try:
            self.signal(signal.SIGKILL)
        except PermissionError:  # it is nobody's, and this process is root's but lacks the capability CAP_KILL
            self.transport.closeStdin()

    @property
    def last_words(self) -> str:
        """The last line on its standard error."""
        return self._words.decode("utf-8", "replace").strip().rpartition("\n")[2]

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Pass messages on; what it writes on standard error is why it is about to end."""
        if childFD == 2:
            self._words = (self._words + data)[-_WORDS_BYTES:]
            return
        try:
            for payload in self._frames.feed(data):
                if payload:
                    self.receive(payload)
                else:
                    self.get_ready()
        except (ValueError, msgspec.MsgspecError, KeyError) as error:
            self._words += f"\nit sent something other than an answer: {error}".encode()
            self.kill()
