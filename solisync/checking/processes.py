"""The processes that read uploaded replays, seen from the service: checkers, and the one that makes timelines."""

import os
import signal
import sys
from contextlib import suppress

import msgspec
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone
from twisted.python.failure import Failure

from ..process.child import Child
from .messages import Answer, Frames, Job, Playback, PlayedBack, frame

CHECKER = (sys.executable, "-P", "-m", "solisync.checking.checker")
TIMELINE_MAKER = (sys.executable, "-P", "-m", "solisync.checking.timeline_maker")

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


class CheckerProcess(ReplayReader):
    """Checks replays.

    `retired` is true when it has ended by itself and in order, having become too large: then it has not begun with the
    jobs that it has not answered.
    """

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...] = CHECKER) -> None:
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


class TimelineProcess(ReplayReader):
    """Makes timelines, one at a time."""

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...] = TIMELINE_MAKER) -> None:
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
