"""A checker process, seen from the service."""

import os
import signal
import sys

import msgspec
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone
from twisted.python.failure import Failure

from ..process.child import Child
from .messages import Answer, Frames, Job, frame

COMMAND = (sys.executable, "-P", "-m", "solisync.checking.checker")

_WORDS_BYTES = 2_000  # of what it writes on standard error, the last is kept


class CheckerProcess(Child):
    """Starts with its creation, and ends by `kill` or by itself; `ready` when it takes jobs.

    `retired` is true when it has ended by itself and in order, having become too large: then it has not begun with the
    jobs that it has not answered.
    """

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...] = COMMAND) -> None:
        super().__init__()
        self.retired = False
        self._frames = Frames()
        self._decode = msgspec.msgpack.Decoder(Answer).decode
        self._asked: dict[bool, Deferred[Answer | None]] = {}
        self._words = b""
        # Nothing of the service's environment, in which there may be secrets: only where the program's modules are.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.start(reactor, command, environment, {0: "w", 1: "r", 2: "r"})

    def check(self, body: bytes, *, search: bool) -> Deferred[Answer | None]:
        """Have a replay checked, one of each kind at a time; None when the process ends before it has an answer."""
        answer: Deferred[Answer | None] = Deferred()
        if self.ended.called:
            answer.callback(None)
            return answer
        self._asked[search] = answer
        self.transport.writeToChild(0, frame(msgspec.msgpack.encode(Job(search, body))))
        return answer

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
        """Pass answers on; what it writes on standard error is why it is about to end."""
        if childFD == 2:
            self._words = (self._words + data)[-_WORDS_BYTES:]
            return
        try:
            for payload in self._frames.feed(data):
                self._receive(payload)
        except (ValueError, msgspec.MsgspecError, KeyError) as error:
            self._words += f"\nit sent something other than an answer: {error}".encode()
            self.kill()

    def _receive(self, payload: bytes) -> None:
        if payload:
            answer = self._decode(payload)
            self._asked.pop(answer.search).callback(answer)
        else:
            self.get_ready()

    def processEnded(self, reason: Failure) -> None:
        """Tell all who wait that no answer will come."""
        self.retired = self.ready.called and reason.check(ProcessDone) is not None
        super().processEnded(reason)
        while self._asked:
            self._asked.popitem()[1].callback(None)
