"""The program of a checker process: it checks the replays from its standard input, until that ends.

It has only what a check needs: no settings, no database, no Twisted. It has the lowest priority, a limit of processor
time for each replay, and a limit of memory. It gives up privileges only after loading its modules, because root's files
may be readable only for root. A search for undos looks for a new literal check every few milliseconds, and does that
check first.
"""

import os
import resource
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from ..klondike import ENGINE_VERSION, UNPROVED, Proved, Reason, Status, Verdict, check, check_literally, prove
from .confinement import allow, confine
from .messages import READY, Answer, Frames, Job, compressed_timeline, frame

LOWEST_PRIORITY = 19
CPU_SECONDS = 5
SEARCH_SECONDS = 4.8  # the rest of CPU_SECONDS is for the timeline, and for work between two looks at the clock
KEPT_BYTES = 64 * 2**20  # a process with more memory after a search ends, because Python returns little of it

T = TypeVar("T")

_READ_BYTES = 65_536
_OUT_OF_BUDGET = Verdict(status=Status.UNDECIDED, reason=Reason.BUDGET)


class _OutOfTimeError(Exception):
    """The kernel has signalled that the processor time of this job is used up."""


class Checker:
    """Answers one job after the other; a literal check interrupts a running search."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._jobs: deque[Job] = deque()
        self._decode = msgspec.msgpack.Decoder(Job).decode
        self._deadline = 0.0
        self._interrupted = 0.0  # the processor time of literal checks during this job
        self._stoppable = False

    def run(self) -> None:
        """Work until standard input ends, or until this process is too large; the service then starts another one."""
        signal.signal(signal.SIGXCPU, self._stop)
        self._send(READY)
        while True:
            while not self._jobs:
                self._read()
            job = self._jobs[0]
            self._interrupted = 0.0
            began = time.process_time()
            verdict = self._bounded(self._search if job.search else check_literally, job.body, otherwise=_OUT_OF_BUDGET)
            proved = self._bounded(prove, job.body, otherwise=None) if verdict.status in UNPROVED else None
            self._jobs.popleft()
            self._answer(job, verdict, proved, time.process_time() - began - self._interrupted)
            if job.search and not self._jobs and self._frames.is_empty and _memory() > KEPT_BYTES:
                return

    def _search(self, body: bytes) -> Verdict:
        self._deadline = time.process_time() + SEARCH_SECONDS
        return check(body, used=self._used)

    def _bounded(self, work: Callable[[bytes], T], body: bytes, *, otherwise: T) -> T:
        """Return the result of `work`, or `otherwise` if time or memory run out."""
        allow(CPU_SECONDS)
        self._stoppable = True
        try:
            return work(body)
        except (MemoryError, _OutOfTimeError):
            return otherwise
        finally:
            self._stoppable = False

    def _stop(self, *_: object) -> None:
        """End the check, but not while an answer is being sent or a job received."""
        if self._stoppable:
            self._stoppable = False
            raise _OutOfTimeError

    def _used(self) -> float:
        """Do waiting literal checks, whose time doesn't count, and return the used share of the search's time."""
        self._stoppable = False
        began = time.process_time()
        self._interrupt()
        while select.select([0], [], [], 0)[0]:
            self._read()
            self._interrupt()
        now = time.process_time()
        if now > began + 0.001:
            self._deadline += now - began
            self._interrupted += now - began
            allow(self._deadline - now + CPU_SECONDS - SEARCH_SECONDS)
        self._stoppable = True
        return 1 - (self._deadline - now) / SEARCH_SECONDS

    def _interrupt(self) -> None:
        """Do the literal checks that wait behind the search."""
        while len(self._jobs) > 1:
            job = self._jobs[1]
            began = time.process_time()
            allow(CPU_SECONDS)
            # A MemoryError must end the search, which has most of the memory.
            verdict = check_literally(job.body)
            proved = prove(job.body) if verdict.status in UNPROVED else None
            del self._jobs[1]
            self._answer(job, verdict, proved, time.process_time() - began)

    def _answer(self, job: Job, verdict: Verdict, proved: Proved | None, cpu_seconds: float) -> None:
        timeline = compressed_timeline(job.body, verdict)
        answer = Answer(
            search=job.search,
            verdict=verdict,
            engine=ENGINE_VERSION,
            timeline_digest=None if timeline is None else sha256(timeline).digest(),
            proved=proved,
            # The clock goes back by up to a tick when `allow` sets a limit, because Linux then counts by samples.
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
    """Resident memory in bytes, or 0 without /proc."""
    try:
        return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def main(priority: int = LOWEST_PRIORITY) -> None:
    """Work at this priority, a nice value, until standard input ends."""
    confine(priority)
    with suppress(BrokenPipeError):
        Checker().run()
    # Freeing a search's memory object by object may exceed the limit of processor time. If a signal ended this
    # process, jobs sent to it in that time would count as tried.
    os._exit(0)


if __name__ == "__main__":
    main()
