"""Password hashing (docs/security.md "Passwords")."""

import base64
import hashlib
import hmac
import os
import threading

import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from solisync.access.passwords import QUEUE_SECONDS, Passwords, prehash
from solisync.errors import Unavailable


class HandThreads:
    """A replacement for a thread pool: work is done when the test wants."""

    def __init__(self):
        self.work = []

    def callInThreadWithCallback(self, done, function, *arguments):
        self.work.append((done, function, arguments))

    def run_one(self):
        """Do the oldest piece of work and report its outcome, as a thread would through the reactor."""
        done, function, arguments = self.work.pop(0)
        try:
            done(True, function(*arguments))
        except Exception:
            done(False, Failure())


class NowClock(Clock):
    """A clock whose callFromThread is a plain call."""

    def callFromThread(self, function, *arguments):
        function(*arguments)


@pytest.fixture
def threads():
    return HandThreads()


@pytest.fixture
def clock():
    return NowClock()


@pytest.fixture
def passwords(threads, clock):
    return Passwords(reactor=clock, threads=threads, at_once=2, cost=4)


def outcome(coroutine):
    """Start a coroutine; return its Deferred, and a list that gets its result or failure."""
    results = []
    deferred = Deferred.fromCoroutine(coroutine)
    deferred.addBoth(results.append)
    return deferred, results


@given(st.binary(max_size=72))
def test_password_of_up_to_72_bytes_is_plain_bcrypt(password):
    """Hashes of short passwords can be exchanged with other systems."""
    assert prehash(password) == password


@given(st.binary(min_size=73, max_size=1024))
def test_longer_password_is_condensed_with_every_byte(password):
    """Beyond 72 bytes bcrypt gets 0xff and the base64 of an HMAC-SHA-384."""
    digest = hmac.new(b"solisync password v1", password, hashlib.sha384).digest()
    assert prehash(password) == b"\xff" + base64.b64encode(digest)
    assert prehash(password) != prehash(password[:-1] + bytes([password[-1] ^ 1]))


@given(st.binary(max_size=1024))
def test_password_is_cut_for_a_hash_of_another_system(password):
    """The first 72 bytes count, and nothing else."""
    assert prehash(password, cut=True) == password[:72]


async def test_hash_of_another_system_verifies(reactor):
    """A long password is verified as the other system would; hashes made here aren't cut."""
    passwords = Passwords(reactor=reactor, threads=reactor.getThreadPool(), at_once=2, cost=4)
    password = b"long " * 20
    theirs = bcrypt.hashpw(password[:72], bcrypt.gensalt(4)).decode()
    assert await passwords.verify(password, theirs, cut=True)
    assert await passwords.verify(password[:72] + b"anything", theirs, cut=True)
    assert not await passwords.verify(password[1:], theirs, cut=True)
    assert not await passwords.verify(password, theirs)
    assert not await passwords.verify(password, await passwords.hash(password), cut=True)


async def test_hash_verifies_its_password_only(reactor):
    """NUL and the 73rd byte count too."""
    passwords = Passwords(reactor=reactor, threads=reactor.getThreadPool(), at_once=2, cost=4)
    for password in (b"12345678", b"nul\0inside!", b"x" * 72, b"x" * 73, "pässwörd ".encode() * 20):
        stored = await passwords.hash(password)
        assert stored.startswith("$2b$04$")
        assert await passwords.verify(password, stored)
        assert not await passwords.verify(password + b"x", stored)
        assert not await passwords.verify(password[:-1], stored)


def test_default_cost_is_12(threads, clock):
    """The stand-in hash for unknown players has the same cost."""
    passwords = Passwords(reactor=clock, threads=threads, at_once=1)
    _, results = outcome(passwords.hash(b"12345678"))
    threads.run_one()
    assert results[0].startswith("$2b$12$")
    assert passwords._nobody.startswith(b"$2b$12$")


@pytest.mark.parametrize("stored", [None, bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()], ids=["nobody", "ann"])
def test_unknown_player_costs_one_verification(passwords, threads, monkeypatch, stored):
    """Known and unknown players cost one bcrypt each, at the same cost."""
    costs = []
    monkeypatch.setattr(bcrypt, "checkpw", lambda password, hashed: costs.append(hashed[:7]) or False)
    _, results = outcome(passwords.verify(b"wrong", stored))
    threads.run_one()
    assert (results, costs, threads.work) == ([False], [b"$2b$04$"], [])


def test_unknown_player_is_never_verified(passwords, threads, monkeypatch):
    """A password that matches the stand-in hash is wrong too."""
    monkeypatch.setattr(bcrypt, "checkpw", lambda password, hashed: True)
    _, results = outcome(passwords.verify(b"any", None))
    threads.run_one()
    assert results == [False]


def test_jobs_beyond_the_threads_wait(passwords, threads):
    """The third job starts when one of the first two is done, because there are two threads."""
    pending = [outcome(passwords.hash(b"12345678")) for _ in range(3)]
    assert len(threads.work) == 2
    threads.run_one()
    assert len(threads.work) == 2
    threads.run_one()
    threads.run_one()
    assert all(len(results) == 1 for _, results in pending)


def test_job_that_would_wait_too_long_is_declined(passwords, threads):
    """The queue takes as much as the measured pace can serve within its bound."""
    pending = [outcome(passwords.hash(b"12345678")) for _ in range(60)]
    declined = [results for _, results in pending if results]
    assert len(declined) == 60 - 2 - int(QUEUE_SECONDS / 0.25 * 2)
    assert all(results[0].check(Unavailable) and results[0].value.retry_after >= 1 for results in declined)
    for deferred, _ in pending:
        deferred.addErrback(lambda _: None)


def test_replacing_a_password_waits_once(passwords, threads):
    """The same turn verifies the current password and hashes the new one, even if the queue has filled up."""
    current = outcome(passwords.hash(b"12345678"))[1]
    threads.run_one()
    replacing = outcome(passwords.replace(b"12345678", current[0], b"87654321"))[1]
    mistaken = outcome(passwords.replace(b"123456789", current[0], b"87654321"))[1]
    others = [outcome(passwords.hash(b"12345678")) for _ in range(60)]
    threads.run_one()
    threads.run_one()
    assert bcrypt.checkpw(b"87654321", replacing[0].encode())
    assert mistaken == [None]
    for deferred, _ in others:
        deferred.addErrback(lambda _: None)
        deferred.cancel()


def test_slower_machine_queues_fewer_jobs(passwords, threads, clock):
    """The bound is a time, so fewer jobs fit where a hash takes longer."""
    for _ in range(40):
        outcome(passwords.hash(b"12345678"))
        clock.advance(1)
        threads.run_one()
    pending = [outcome(passwords.hash(b"12345678")) for _ in range(60)]
    assert 8 <= sum(not results for _, results in pending) <= 13


def test_job_never_waits_beyond_the_bound(passwords, threads, clock):
    """If other processes take the cores away, jobs that have waited for so long are declined, and never hashed."""
    pending = [outcome(passwords.hash(b"12345678")) for _ in range(6)]
    clock.advance(QUEUE_SECONDS - 0.1)
    threads.run_one()
    clock.advance(0.1)
    assert [bool(results) for _, results in pending] == [True, False, False, True, True, True]
    assert all(results[0].check(Unavailable) for _, results in pending[3:])
    threads.run_one()
    threads.run_one()
    assert threads.work == []
    assert [results[0][:7] for _, results in pending[:3]] == ["$2b$04$"] * 3
    assert clock.getDelayedCalls() == []


def test_cancelled_job_leaves_the_queue(passwords, threads):
    """Its password is never hashed."""
    pending = [outcome(passwords.hash(b"12345678")) for _ in range(4)]
    pending[2][0].cancel()
    assert pending[2][1][0].check(CancelledError)
    for _ in range(3):
        threads.run_one()
    assert threads.work == []
    assert [len(results) for _, results in pending] == [1, 1, 1, 1]


def test_cancelled_running_job_keeps_its_place_until_it_ends(passwords, threads):
    """A thread can't be stopped."""
    first, _, third = (outcome(passwords.hash(b"12345678")) for _ in range(3))
    first[0].cancel()
    assert len(threads.work) == 2
    threads.run_one()
    threads.run_one()
    threads.run_one()
    assert third[1][0].startswith("$2b$")


def test_failure_of_a_cancelled_job_is_logged(passwords, threads, no_lost_failures):
    """Operators should know of a hash that bcrypt can't read, even if no request waits."""
    verifying, _ = outcome(passwords.verify(b"12345678", "not a hash"))
    verifying.cancel()
    threads.run_one()
    (logged,) = no_lost_failures
    assert "Invalid salt" in logged
    no_lost_failures.clear()


def test_malformed_stored_hash_fails_only_its_login(passwords, threads):
    """The job's place becomes free."""
    for _ in range(5):
        _, results = outcome(passwords.verify(b"12345678", "not a hash"))
        threads.run_one()
        assert results[0].check(ValueError)
    _, results = outcome(passwords.hash(b"12345678"))
    threads.run_one()
    assert results[0].startswith("$2b$")


async def test_hashing_lowers_the_priority_of_its_own_thread(reactor, monkeypatch):
    """The reactor keeps its priority."""
    niceness = []
    monkeypatch.setattr("solisync.access.passwords._thread", threading.local())
    monkeypatch.setattr(bcrypt, "checkpw", lambda *_: niceness.append(own_niceness()))
    pool = ThreadPool(1, 1)
    pool.start()
    try:
        await Passwords(reactor=reactor, threads=pool, at_once=1, cost=4).verify(b"x", None)
    finally:
        pool.stop()
    assert niceness == [max(own_niceness(), 10)]


def own_niceness():
    """Return the niceness of the calling thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
