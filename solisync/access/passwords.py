"""Password hashing: bcrypt, off the reactor and behind a bound (contract §3); the only module that knows bcrypt."""

import base64
import hashlib
import hmac
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import bcrypt
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from ..errors import Unavailable

COST = 12
QUEUE_SECONDS = 5.0
BCRYPT_MAX_BYTES = 72

T = TypeVar("T")

_thread = threading.local()


def prehash(password: bytes) -> bytes:
    """What bcrypt gets to see: the password itself, or for one over 72 bytes a digest of all of it.

    bcrypt can't take more than 72 bytes. The digest begins with 0xff, which no UTF-8 text does, so no short password
    equals a condensed one.
    """
    if len(password) <= BCRYPT_MAX_BYTES:
        return password
    return b"\xff" + base64.b64encode(hmac.digest(b"solisync password v1", password, hashlib.sha384))


class Passwords:
    """Hashes and verifies at most `at_once` passwords at a time, and declines what would wait too long.

    The queue is bounded in time, not in length: it takes what the measured pace can serve within QUEUE_SECONDS, and
    declines those who have waited that long because the pace has dropped.
    A caller that is cancelled while it waits leaves the queue, so nobody hashes for a client that has gone. `waited` is
    told how long each has waited.
    """

    def __init__(
        self,
        *,
        reactor: ReactorBase,
        threads: ThreadPool,
        at_once: int,
        cost: int = COST,
        waited: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._reactor = reactor
        self._threads = threads
        self._free = at_once
        self._at_once = at_once
        self._cost = cost
        self._waited = waited
        self._waiting: deque[Deferred[None]] = deque()
        self._seconds_each = 0.25  # moves towards what this machine really needs
        # Any well-formed hash of the right cost makes a login for nobody as slow as one for somebody.
        self._nobody = f"$2b${cost:02d}$UVmvVqOpQGBwmrkAbBTIwefJ9Rcj9yEOThhnbIZFpOESUaDrqFqOy".encode()

    async def hash(self, password: bytes) -> str:
        """The bcrypt hash of `password`; raises Unavailable when the queue is full."""
        return await self._run(lambda: bcrypt.hashpw(prehash(password), bcrypt.gensalt(self._cost)).decode("ascii"))

    async def verify(self, password: bytes, password_hash: str | None) -> bool:
        """Whether `password` has this hash; for None, False after the same work. Raises Unavailable as `hash` does."""
        expected = self._nobody if password_hash is None else password_hash.encode()
        matches = await self._run(lambda: bcrypt.checkpw(prehash(password), expected))
        return matches and password_hash is not None

    @property
    def waiting(self) -> int:
        """How many passwords wait for their turn."""
        return len(self._waiting)

    def require_room(self) -> None:
        """Raise Unavailable when one more password would wait too long; worth asking before any work for it."""
        if not self._free and (len(self._waiting) + 1) * self._seconds_each / self._at_once > QUEUE_SECONDS:
            raise Unavailable(retry_after=int(QUEUE_SECONDS))

    async def _run(self, work: Callable[[], T]) -> T:
        arrived = self._reactor.seconds()
        if self._free:
            self._free -= 1
        else:
            await self._turn()
        began = self._reactor.seconds()
        self._waited(began - arrived)
        running = deferToThreadPool(self._reactor, self._threads, _at_low_priority, work)
        running.addBoth(self._done, began)
        # The thread can't be stopped: a caller that is cancelled now leaves, and the place is freed at the end.
        outcome: Deferred[T] = Deferred()
        running.addBoth(lambda result: None if outcome.called else outcome.callback(result))
        return await outcome

    async def _turn(self) -> None:
        self.require_room()
        turn: Deferred[None] = Deferred(self._waiting.remove)
        self._waiting.append(turn)
        try:
            await turn.addTimeout(QUEUE_SECONDS, self._reactor)
        except TimeoutError:
            raise Unavailable(retry_after=int(QUEUE_SECONDS)) from None

    def _done(self, result: T, began: float) -> T:
        self._seconds_each += (self._reactor.seconds() - began - self._seconds_each) / 8
        if self._waiting:
            self._waiting.popleft().callback(None)
        else:
            self._free += 1
        return result


def _at_low_priority(work: Callable[[], T]) -> T:
    """Run `work` with this thread's priority lowered, so that the reactor stays quick while every core hashes."""
    if not getattr(_thread, "polite", False):
        _thread.polite = True
        if hasattr(os, "setpriority"):
            # On Linux the id of a thread works where that of a process is asked for; it can't be raised again.
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    return work()
