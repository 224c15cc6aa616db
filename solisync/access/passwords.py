"""Password hashing with bcrypt, in threads and behind a bounded queue (docs/security.md "Passwords").

The only module that imports bcrypt.
"""

import base64
import hashlib
import hmac
import os
import secrets
import string
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import bcrypt
from twisted.internet.base import ReactorBase
from twisted.internet.defer import DeferredSemaphore, TimeoutError
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

from ..errors import Unavailable
from ..process.shielded import shielded

COST = 12
QUEUE_SECONDS = 5.0
BCRYPT_MAX_BYTES = 72

T = TypeVar("T")

_BASE64 = "./" + string.ascii_letters + string.digits  # the alphabet of bcrypt
_thread = threading.local()


def prehash(password: bytes, *, cut: bool = False) -> bytes:
    """What bcrypt hashes: the password itself or, above bcrypt's limit of 72 bytes, an HMAC-SHA-384 of all of it.

    The digest is prefixed with 0xff, which begins no UTF-8 text, so no short password equals a digest. With `cut`, what
    other systems hash: the first 72 bytes, and nothing of the rest.
    """
    if cut or len(password) <= BCRYPT_MAX_BYTES:
        return password[:BCRYPT_MAX_BYTES]
    return b"\xff" + base64.b64encode(hmac.digest(b"solisync password v1", password, hashlib.sha384))


class Passwords:
    """Hashes and verifies passwords in the thread pool, `at_once` at a time; the rest wait in a queue.

    The queue is bounded in time, not in length: it accepts what the measured pace can serve within QUEUE_SECONDS, and
    rejects what has waited for that long because the pace has dropped. A caller that is cancelled while it waits leaves
    the queue, so nothing is hashed for a client that has hung up. `waited` is called with the seconds that each
    password has waited.
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
        self._slots = DeferredSemaphore(at_once)
        self._cost = cost
        self._waited = waited
        self._seconds_each = 0.25  # a moving average of what one password takes on this machine
        # Verified when the user doesn't exist: a well-formed hash of the same cost, so that both cases take as long.
        self._nobody = f"$2b${cost:02d}$UVmvVqOpQGBwmrkAbBTIwefJ9Rcj9yEOThhnbIZFpOESUaDrqFqOy".encode()

    async def hash(self, password: bytes) -> str:
        """The bcrypt hash of `password`; raises Unavailable when the queue is full."""
        return await self._run(lambda: self._hash(password))

    async def hash_of_nothing(self) -> str:
        """The hash of a random password, which nobody knows."""
        return await self.hash(secrets.token_urlsafe(32).encode())

    def hash_of_guest(self) -> str:
        """Random text in the form of a hash, made without hashing: no password has it."""
        return bcrypt.gensalt(self._cost).decode("ascii") + "".join(secrets.choice(_BASE64) for _ in range(31))

    async def verify(self, password: bytes, password_hash: str | None, *, cut: bool = False) -> bool:
        """Whether `password` has this hash; for None, False after the same work. Raises Unavailable as `hash` does.

        `cut`: the hash comes from a system that hashed the first 72 bytes alone.
        """
        expected = self._nobody if password_hash is None else password_hash.encode()
        matches = await self._run(lambda: bcrypt.checkpw(prehash(password, cut=cut), expected))
        return matches and password_hash is not None

    async def replace(self, current: bytes, password_hash: str, new: bytes, *, cut: bool = False) -> str | None:
        """The hash of `new`, or None when `current` hasn't this hash. Raises Unavailable as `hash` does.

        Both are one piece of work for the queue: else a flood of these would fill it with first halves, whose second
        halves would then be rejected.
        """

        def work() -> str | None:
            if not bcrypt.checkpw(prehash(current, cut=cut), password_hash.encode()):
                return None
            return self._hash(new)

        return await self._run(work)

    @property
    def waiting(self) -> int:
        """The length of the queue."""
        return len(self._slots.waiting)

    def require_room(self) -> None:
        """Raise Unavailable when one more password would wait too long; worth asking before any work for it."""
        if not self._slots.tokens and (self.waiting + 1) * self._seconds_each / self._slots.limit > QUEUE_SECONDS:
            raise Unavailable(retry_after=int(QUEUE_SECONDS))

    def _hash(self, password: bytes) -> str:
        return bcrypt.hashpw(prehash(password), bcrypt.gensalt(self._cost)).decode("ascii")

    async def _run(self, work: Callable[[], T]) -> T:
        self.require_room()
        arrived = self._reactor.seconds()
        try:
            await self._slots.acquire().addTimeout(QUEUE_SECONDS, self._reactor)
        except TimeoutError:
            raise Unavailable(retry_after=int(QUEUE_SECONDS)) from None
        began = self._reactor.seconds()
        self._waited(began - arrived)
        running = deferToThreadPool(self._reactor, self._threads, _at_low_priority, work)
        # A thread can't be stopped: it keeps its slot until it has ended, also when the caller is cancelled meanwhile.
        return await shielded(running.addBoth(self._release, began))

    def _release(self, result: T, began: float) -> T:
        self._seconds_each += (self._reactor.seconds() - began - self._seconds_each) / 8
        self._slots.release()
        return result


def _at_low_priority(work: Callable[[], T]) -> T:
    """Run `work` with this thread's priority lowered, so that the reactor stays quick while every core hashes."""
    if not getattr(_thread, "lowered", False):
        _thread.lowered = True
        if hasattr(os, "setpriority"):
            # Linux accepts the id of a thread where that of a process is asked for; only root could raise it again.
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    return work()
