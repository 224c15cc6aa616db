"""The processes that read uploaded replays, seen from the service: checkers, and the one that makes timelines."""

import os
import signal
import sys
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone
from twisted.python.failure import Failure

from ..process.child import Child
from .messages import Answer, Frames, Job, Playback, PlayedBack, frame

CHECKER = (sys.executable, "-P", "-m", "solisync.checking.checker")
TIMELINE_MAKER = (sys.executable, "-P", "-m", "solisync.checking.timeline_maker")

T = TypeVar("T", bound=msgspec.Struct)

_WORDS_BYTES = 2_000  # of what it writes on standard error, the last is kept


class ReplayReader(Child, Generic[T]):
    """Starts with its creation, and ends by `kill` or by itself; `ready` when it takes messages.

    It answers each message with an instance of `answers`. Messages may be of two kinds, one of each at a time.
    """

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...], answers: type[T]) -> None:
        super().__init__()
        self._frames = Frames()
        self._decode = msgspec.msgpack.Decoder(answers).decode
        self._asked: dict[bool, Deferred[T | None]] = {}
        self._words = b""
        # Nothing of the service's environment, in which there may be secrets: only where the program's modules are.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.start(reactor, command, environment, {0: "w", 1: "r", 2: "r"})

    def ask(self, message: msgspec.Struct, kind: bool = False) -> Deferred[T | None]:
        """Send a message to its standard input; the answer, or None when the process ends before it has one."""
        answer: Deferred[T | None] = Deferred()
        if self.ended.called:
            answer.callback(None)
            return answer
        self._asked[kind] = answer
        with suppress(KeyError):  # Twisted has forgotten the pipe, because the process is about to end
            self.transport.writeToChild(0, frame(msgspec.msgpack.encode(message)))
        return answer

    def kind_of(self, answer: T) -> bool:
        """The kind of the message that this answers."""
        return False

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
                if not payload:
                    self.get_ready()
                    continue
                answer = self._decode(payload)
                self._asked.pop(self.kind_of(answer)).callback(answer)
        except (ValueError, msgspec.MsgspecError, KeyError) as error:
            self._words += f"\nit sent something other than an answer: {error}".encode()
            self.kill()

    def processEnded(self, reason: Failure) -> None:
        """Answer all messages that have no answer yet with None."""
        super().processEnded(reason)
        while self._asked:
            self._asked.popitem()[1].callback(None)


class CheckerProcess(ReplayReader[Answer]):
    """Checks replays.

    `retired` is true when it has ended by itself and in order, having become too large: then it has not begun with the
    jobs that it has not answered.
    """

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...] = CHECKER) -> None:
        self.retired = False
        super().__init__(reactor, command, Answer)

    def check(self, body: bytes, *, search: bool) -> Deferred[Answer | None]:
        """Have a replay checked, one of each kind at a time; None when the process ends before it has an answer."""
        return self.ask(Job(search, body), search)

    def kind_of(self, answer: Answer) -> bool:
        """Whether it answers a search."""
        return answer.search

    def processEnded(self, reason: Failure) -> None:
        """Note whether it has ended in order."""
        self.retired = self.ready.called and reason.check(ProcessDone) is not None
        super().processEnded(reason)


class TimelineProcess(ReplayReader[PlayedBack]):
    """Makes timelines, one at a time."""

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...] = TIMELINE_MAKER) -> None:
        super().__init__(reactor, command, PlayedBack)

    def make(self, playback: Playback) -> Deferred[PlayedBack | None]:
        """Have a timeline made; None when the process ends before it has an answer."""
        return self.ask(playback)
