"""The program of a checker process: checks the replays that come on standard input, until that ends.

It has what the check needs and nothing else: no settings, no database, no Twisted. Its priority is the lowest, its
processor time for each replay and its memory are limited. It gives up privileges only once its modules are loaded,
because root's files may be readable for root alone. While it searches for undos it looks every few milliseconds whether
a replay has come that is to be checked literally, and checks that first.
"""

import ctypes
import gc
import os
import pwd
import resource
import select
import signal
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from ..klondike import ENGINE_VERSION, Reason, Status, Verdict, check, check_literally, make_timeline
from .messages import READY, Answer, Frames, Job, frame

LOWEST_PRIORITY = 19
CPU_SECONDS = 5
SEARCH_SECONDS = 4.8  # the rest is for what the search does between two looks at the clock, and for the timeline
MEMORY_BYTES = 256 * 2**20
KEPT_BYTES = 64 * 2**20  # a process that has more after a search ends, because Python gives little back

_READ_BYTES = 65_536
_PR_SET_NO_NEW_PRIVS = 38
_NOBODY = 65_534  # where no user has that name
_OUT_OF_BUDGET = Verdict(status=Status.UNDECIDED, reason=Reason.BUDGET)


class _OutOfTimeError(Exception):
    """The kernel says that the processor time of this job is used up."""


class Checker:
    """Answers one job after the other; a literal check does not wait for a search that has begun."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._jobs: deque[Job] = deque()
        self._decode = msgspec.msgpack.Decoder(Job).decode
        self._deadline = 0.0
        self._stoppable = False

    def run(self) -> None:
        """Work until standard input ends, or until this process has become large: then another one takes its place."""
        signal.signal(signal.SIGXCPU, self._stop)
        self._send(READY)
        while True:
            while not self._jobs:
                self._read()
            job = self._jobs[0]
            began = time.process_time()
            verdict, cpu_seconds = (self._search if job.search else self._check_literally)(job.body, began)
            self._jobs.popleft()
            self._answer(job, verdict, cpu_seconds)
            if job.search and not self._jobs and self._frames.is_empty and _memory() > KEPT_BYTES:
                return

    def _check_literally(self, body: bytes, began: float) -> tuple[Verdict, float]:
        verdict = self._bounded(lambda: check_literally(body))
        return verdict, time.process_time() - began

    def _search(self, body: bytes, began: float) -> tuple[Verdict, float]:
        self._deadline = began + SEARCH_SECONDS
        verdict = self._bounded(lambda: check(body, used=self._used))
        interrupted = self._deadline - began - SEARCH_SECONDS
        return verdict, time.process_time() - began - interrupted

    def _bounded(self, work: Callable[[], Verdict]) -> Verdict:
        _allow(CPU_SECONDS)
        self._stoppable = True
        try:
            return work()
        except (MemoryError, _OutOfTimeError):
            return _OUT_OF_BUDGET
        finally:
            self._stoppable = False

    def _stop(self, *_: object) -> None:
        """End the check; but not where an answer is being sent, or the next job received."""
        if self._stoppable:
            self._stoppable = False
            raise _OutOfTimeError

    def _used(self) -> float:
        """Check what has come meanwhile, in time of its own; which share of the time for the search is used up."""
        self._stoppable = False
        began = time.process_time()
        self._interrupt()
        while select.select([0], [], [], 0)[0]:
            self._read()
            self._interrupt()
        now = time.process_time()
        if now > began + 0.001:
            self._deadline += now - began
            _allow(self._deadline - now + CPU_SECONDS - SEARCH_SECONDS)
        self._stoppable = True
        return 1 - (self._deadline - now) / SEARCH_SECONDS

    def _interrupt(self) -> None:
        """Check what waits behind the search."""
        while len(self._jobs) > 1:
            job = self._jobs[1]
            began = time.process_time()
            _allow(CPU_SECONDS)
            verdict = check_literally(job.body)  # a MemoryError is for the search, which has most of the memory
            del self._jobs[1]
            self._answer(job, verdict, time.process_time() - began)

    def _answer(self, job: Job, verdict: Verdict, cpu_seconds: float) -> None:
        timeline = make_timeline(job.body, verdict)
        answer = Answer(
            search=job.search,
            verdict=replace(verdict, undo_places=()),
            engine=ENGINE_VERSION,
            timeline=None if timeline is None else zlib.compress(timeline, 9),
            # the clock goes back by up to a tick when _allow sets a limit: Linux then counts by samples
            cpu_seconds=max(cpu_seconds, 0.0),
        )
        self._send(msgspec.msgpack.encode(answer))

    def _read(self) -> None:
        data = os.read(0, _READ_BYTES)
        if not data:
            sys.exit()
        self._jobs.extend(map(self._decode, self._frames.feed(data)))

    def _send(self, payload: bytes) -> None:
        sys.stdout.buffer.write(frame(payload))
        sys.stdout.buffer.flush()


def _memory() -> int:
    """Resident memory in bytes; 0 where there is no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _allow(seconds: float) -> None:
    """Have the kernel send SIGXCPU after so many seconds more of processor time, rounded up, as it counts them.

    That is by samples, which on a busy machine may be more than the time that a process is told of.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, hard))


def _give_up_privileges() -> None:
    """Never gain any by running a program, and be nobody instead of root, as far as the platform allows."""
    with suppress(AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.geteuid():
        return
    try:
        user = pwd.getpwnam("nobody")
        uid, gid = user.pw_uid, user.pw_gid
    except KeyError:
        uid = gid = _NOBODY
    with suppress(OSError):  # a container's root may lack the capability, or its namespace this user
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)


def main(priority: int = LOWEST_PRIORITY) -> None:
    """Work at this priority, a nice value, until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service to act on
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, max(priority, os.getpriority(os.PRIO_PROCESS, 0)))
    for limit, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):  # not every platform can
            resource.setrlimit(limit, (most, most))
    _give_up_privileges()
    gc.disable()  # there are no cycles, and many tuples to look through
    with suppress(BrokenPipeError):
        Checker().run()
    # Freeing a search's memory object by object may exceed the limit of processor time, and a signal is not an orderly
    # end: what was sent to this process meanwhile would count as tried.
    os._exit(0)


if __name__ == "__main__":
    main()
