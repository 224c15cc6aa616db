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

_WORDS_BYTES = 2_000  # the part of its standard error that is kept, from the end


class ReplayReader(Child, Generic[T]):
    """A process that starts with its creation, and ends by `kill` or by itself; it is `ready` when it takes messages.

    It answers each message with an instance of `answers`. There are up to two kinds of messages, one of each at a time.
    """

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...], answers: type[T]) -> None:
        super().__init__()
        self._frames = Frames()
        self._decode = msgspec.msgpack.Decoder(answers).decode
        self._asked: dict[bool, Deferred[T | None]] = {}
        self._words = b""
        # Only the path of the program's modules, because the service's environment may have secrets.
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.start(reactor, command, environment, {0: "w", 1: "r", 2: "r"})

    def ask(self, message: msgspec.Struct, kind: bool = False) -> Deferred[T | None]:
        """Send a message to the process; return its answer, or None if the process ends before it answers."""
        answer: Deferred[T | None] = Deferred()
        if self.ended.called:
            answer.callback(None)
            return answer
        self._asked[kind] = answer
        with suppress(KeyError):  # Twisted has forgotten the pipe, because the process is about to end
            self.transport.writeToChild(0, frame(msgspec.msgpack.encode(message)))
        return answer

    def kind_of(self, answer: T) -> bool:
        """The kind of the answered message."""
        return False

    def kill(self) -> None:
        """End the process immediately, because it has no data to lose."""
        try:
            self.signal(signal.SIGKILL)
        except PermissionError:  # the process runs as `nobody`, and this one as root without the capability CAP_KILL
            self.transport.closeStdin()

    @property
    def last_words(self) -> str:
        """The last line of the process on standard error."""
        return self._words.decode("utf-8", "replace").strip().rpartition("\n")[2]

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Pass answers on; keep text from standard error, because it explains the end of the process."""
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
            self._words += f"\nit sent an invalid answer: {error}".encode()
            self.kill()

    def processEnded(self, reason: Failure) -> None:
        """Answer all unanswered messages with None."""
        super().processEnded(reason)
        while self._asked:
            self._asked.popitem()[1].callback(None)


class CheckerProcess(ReplayReader[Answer]):
    """A process that checks replays.

    `retired` is True if the process has ended by itself in an orderly way, because it was too large. Then it hasn't
    begun the jobs that it hasn't answered.
    """

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...] = CHECKER) -> None:
        self.retired = False
        super().__init__(reactor, command, Answer)

    def check(self, body: bytes, *, search: bool) -> Deferred[Answer | None]:
        """Check a replay, one of each kind at a time; return None if the process ends before it answers."""
        return self.ask(Job(search, body), search)

    def kind_of(self, answer: Answer) -> bool:
        """Whether the answer is the result of a search."""
        return answer.search

    def processEnded(self, reason: Failure) -> None:
        """Note whether the process has ended in an orderly way."""
        self.retired = self.ready.called and reason.check(ProcessDone) is not None
        super().processEnded(reason)


class TimelineProcess(ReplayReader[PlayedBack]):
    """A process that makes timelines, one at a time."""

    def __init__(self, reactor: ReactorBase, command: tuple[str, ...] = TIMELINE_MAKER) -> None:
        super().__init__(reactor, command, PlayedBack)

    def make(self, playback: Playback) -> Deferred[PlayedBack | None]:
        """Make a timeline; return None if the process ends before it answers."""
        return self.ask(playback)
