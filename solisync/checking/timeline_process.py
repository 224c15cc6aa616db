"""The process that makes timelines, seen from the service."""

import sys

import msgspec
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from .messages import Playback, PlayedBack
from .replay_reader import ReplayReader

COMMAND = (sys.executable, "-P", "-m", "solisync.checking.timeline_maker")


class TimelineProcess(ReplayReader):
    """Makes timelines, one at a time."""

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...] = COMMAND) -> None:
        self._decode = msgspec.msgpack.Decoder(PlayedBack).decode
        self._asked: list[Deferred[PlayedBack | None]] = []
        super().__init__(reactor, command)

    def make(self, playback: Playback) -> Deferred[PlayedBack | None]:
        """Have a timeline made; None when the process ends before it has an answer."""
        played: Deferred[PlayedBack | None] = Deferred()
        if self.ended.called:
            played.callback(None)
        else:
            self._asked.append(played)
            self.send(playback)
        return played

    def receive(self, payload: bytes) -> None:
        """Pass an answer on."""
        if not self._asked:
            raise ValueError("nobody has asked")
        self._asked.pop(0).callback(self._decode(payload))

    def processEnded(self, reason: Failure) -> None:
        """Tell who waits that no answer will come."""
        super().processEnded(reason)
        while self._asked:
            self._asked.pop().callback(None)
