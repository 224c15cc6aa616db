"""A checker process, seen from the service."""

import sys

import msgspec
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone
from twisted.python.failure import Failure

from .messages import Answer, Job
from .replay_reader import ReplayReader

COMMAND = (sys.executable, "-P", "-m", "solisync.checking.checker")


class CheckerProcess(ReplayReader):
    """Checks replays.

    `retired` is true when it has ended by itself and in order, having become too large: then it has not begun with the
    jobs that it has not answered.
    """

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...] = COMMAND) -> None:
        self.retired = False
        self._decode = msgspec.msgpack.Decoder(Answer).decode
        self._asked: dict[bool, Deferred[Answer | None]] = {}
        super().__init__(reactor, command)

    def check(self, body: bytes, *, search: bool) -> Deferred[Answer | None]:
        """Have a replay checked, one of each kind at a time; None when the process ends before it has an answer."""
        answer: Deferred[Answer | None] = Deferred()
        if self.ended.called:
            answer.callback(None)
            return answer
        self._asked[search] = answer
        self.send(Job(search, body))
        return answer

    def receive(self, payload: bytes) -> None:
        """Pass an answer on."""
        answer = self._decode(payload)
        self._asked.pop(answer.search).callback(answer)

    def processEnded(self, reason: Failure) -> None:
        """Tell all who wait that no answer will come."""
        self.retired = self.ready.called and reason.check(ProcessDone) is not None
        super().processEnded(reason)
        while self._asked:
            self._asked.popitem()[1].callback(None)
