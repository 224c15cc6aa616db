"""Password hashing with bcrypt, in threads and behind a bounded queue (docs/security.md "Passwords").

No other module imports bcrypt.
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
from ..process.tasks import shielded

COST = 12
QUEUE_SECONDS = 5.0
BCRYPT_MAX_BYTES = 72

T = TypeVar("T")

_BASE64 = "./" + string.ascii_letters + string.digits  # the alphabet of bcrypt
_thread = threading.local()


def prehash(password: bytes, *, cut: bool = False) -> bytes:
    """Return the input for bcrypt: the password, or its HMAC-SHA-384 if it exceeds bcrypt's limit of 72 bytes.

    The digest is prefixed with 0xff, which can't begin UTF-8 text, so no short password equals a digest. With `cut`,
    return only the first 72 bytes, as other systems do.
    """
    if cut or len(password) <= BCRYPT_MAX_BYTES:
        return password[:BCRYPT_MAX_BYTES]
    return b"\xff" + base64.b64encode(hmac.digest(b"solisync password v1", password, hashlib.sha384))


class Passwords:
    """Hashes and verifies passwords in the thread pool, `at_once` at a time; the others wait in a queue.

    The queue is bounded by time, not by length: it accepts only passwords that it expects to serve within
    QUEUE_SECONDS at the measured pace. If the pace drops, it rejects passwords that have waited that long. A cancelled
    caller leaves the queue, so nothing is hashed for a client that has hung up. `waited` is called with the seconds
    that each password has waited.
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
        self._seconds_each = 0.25  # a moving average of the time for one password
        # Verified if the player doesn't exist: a valid hash of the same cost, so that both cases take the same time.
        self._nobody = f"$2b${cost:02d}$UVmvVqOpQGBwmrkAbBTIwefJ9Rcj9yEOThhnbIZFpOESUaDrqFqOy".encode()

    async def hash(self, password: bytes) -> str:
        """Return the bcrypt hash of `password`; raise Unavailable if the queue is full."""
        return await self._run(lambda: self._hash(password))

    async def hash_of_nothing(self) -> str:
        """Return the hash of a random, unknown password."""
        return await self.hash(secrets.token_urlsafe(32).encode())

    def hash_of_guest(self) -> str:
        """Return random text in the form of a hash, made without hashing: no password matches it."""
        return bcrypt.gensalt(self._cost).decode("ascii") + "".join(secrets.choice(_BASE64) for _ in range(31))

    async def verify(self, password: bytes, password_hash: str | None, *, cut: bool = False) -> bool:
        """Whether `password` has this hash; for None, False after the same work. Raises Unavailable as `hash` does.

        `cut` is True for a hash from a system that hashed only the first 72 bytes.
        """
        expected = self._nobody if password_hash is None else password_hash.encode()
        matches = await self._run(lambda: bcrypt.checkpw(prehash(password, cut=cut), expected))
        return matches and password_hash is not None

    async def replace(self, current: bytes, password_hash: str, new: bytes, *, cut: bool = False) -> str | None:
        """Return the hash of `new`, or None if `current` doesn't have this hash. Raises Unavailable as `hash` does.

        Verifying and hashing are a single job in the queue. As two jobs, a flood of requests would fill the queue with
        first jobs, and their second jobs would be rejected.
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
        """Raise Unavailable if another password would wait too long; callers check this before any other work."""
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
        # A thread can't be stopped: it keeps its slot until it ends, even if its caller is cancelled.
        return await shielded(running.addBoth(self._release, began))

    def _release(self, result: T, began: float) -> T:
        self._seconds_each += (self._reactor.seconds() - began - self._seconds_each) / 8
        self._slots.release()
        return result


def _at_low_priority(work: Callable[[], T]) -> T:
    """Run `work` at a lower priority of this thread, so that the reactor stays fast while every core hashes."""
    if not getattr(_thread, "lowered", False):
        _thread.lowered = True
        if hasattr(os, "setpriority"):
            # Linux accepts a thread's id in place of a process's. Only root could raise the priority again.
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    return work()
