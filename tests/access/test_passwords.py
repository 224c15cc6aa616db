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
    """Stands in for a thread pool: work is done when the test says so."""

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
    """Start a coroutine; the list gets its result or failure."""
    results = []
    deferred = Deferred.fromCoroutine(coroutine)
    deferred.addBoth(results.append)
    return deferred, results


@given(st.binary(max_size=72))
def test_a_password_of_up_to_72_bytes_is_plain_bcrypt(password):
    """Hashes of short passwords move in and out of other systems."""
    assert prehash(password) == password


@given(st.binary(min_size=73, max_size=1024))
def test_a_longer_password_is_condensed_with_every_byte(password):
    """Over 72 bytes bcrypt sees 0xff and the base64 of an HMAC-SHA-384."""
    digest = hmac.new(b"solisync password v1", password, hashlib.sha384).digest()
    assert prehash(password) == b"\xff" + base64.b64encode(digest)
    assert prehash(password) != prehash(password[:-1] + bytes([password[-1] ^ 1]))


@given(st.binary(max_size=1024))
def test_other_systems_cut_a_password(password):
    """Against a hash of theirs the first 72 bytes count, and nothing else."""
    assert prehash(password, cut=True) == password[:72]


async def test_a_hash_of_another_system_verifies(reactor):
    """What they have made of a long password is verified as they would; a hash made here is not."""
    passwords = Passwords(reactor=reactor, threads=reactor.getThreadPool(), at_once=2, cost=4)
    password = b"long " * 20
    theirs = bcrypt.hashpw(password[:72], bcrypt.gensalt(4)).decode()
    assert await passwords.verify(password, theirs, cut=True)
    assert await passwords.verify(password[:72] + b"anything", theirs, cut=True)
    assert not await passwords.verify(password[1:], theirs, cut=True)
    assert not await passwords.verify(password, theirs)
    assert not await passwords.verify(password, await passwords.hash(password), cut=True)


async def test_hash_and_verify_agree(reactor):
    """What was hashed verifies, NUL and the 73rd byte included; anything else does not."""
    passwords = Passwords(reactor=reactor, threads=reactor.getThreadPool(), at_once=2, cost=4)
    for password in (b"12345678", b"nul\0inside!", b"x" * 72, b"x" * 73, "pässwörd ".encode() * 20):
        stored = await passwords.hash(password)
        assert stored.startswith("$2b$04$")
        assert await passwords.verify(password, stored)
        assert not await passwords.verify(password + b"x", stored)
        assert not await passwords.verify(password[:-1], stored)


def test_production_hashes_at_cost_12(threads, clock):
    """The cost is 12 unless a test says otherwise, also for the hash of nobody."""
    passwords = Passwords(reactor=clock, threads=threads, at_once=1)
    _, results = outcome(passwords.hash(b"12345678"))
    threads.run_one()
    assert results[0].startswith("$2b$12$")
    assert passwords._nobody.startswith(b"$2b$12$")


@pytest.mark.parametrize("stored", [None, bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()], ids=["nobody", "ann"])
def test_one_verification_whoever_it_is(passwords, threads, monkeypatch, stored):
    """An unknown user costs one bcrypt of the same cost as a known one."""
    costs = []
    monkeypatch.setattr(bcrypt, "checkpw", lambda password, hashed: costs.append(hashed[:7]) or False)
    _, results = outcome(passwords.verify(b"wrong", stored))
    threads.run_one()
    assert (results, costs, threads.work) == ([False], [b"$2b$04$"], [])


def test_nobody_is_never_verified(passwords, threads, monkeypatch):
    """Even a password that matches the stand-in hash is wrong."""
    monkeypatch.setattr(bcrypt, "checkpw", lambda password, hashed: True)
    _, results = outcome(passwords.verify(b"any", None))
    threads.run_one()
    assert results == [False]


def test_only_so_many_at_once(passwords, threads):
    """The third job starts when one of the first two is done."""
    pending = [outcome(passwords.hash(b"12345678")) for _ in range(3)]
    assert len(threads.work) == 2
    threads.run_one()
    assert len(threads.work) == 2
    threads.run_one()
    threads.run_one()
    assert all(len(results) == 1 for _, results in pending)


def test_what_would_wait_too_long_is_declined(passwords, threads):
    """The queue takes what the measured pace can serve within its bound, and no more."""
    pending = [outcome(passwords.hash(b"12345678")) for _ in range(60)]
    declined = [results for _, results in pending if results]
    assert len(declined) == 60 - 2 - int(QUEUE_SECONDS / 0.25 * 2)
    assert all(results[0].check(Unavailable) and results[0].value.retry_after >= 1 for results in declined)
    for deferred, _ in pending:
        deferred.addErrback(lambda _: None)


def test_who_replaces_a_password_waits_once(passwords, threads):
    """The current password is verified and the new one hashed in one turn of the queue, however full it is then."""
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


def test_a_slower_machine_takes_less(passwords, threads, clock):
    """The bound is in time: where a hash takes longer, fewer may wait."""
    for _ in range(40):
        outcome(passwords.hash(b"12345678"))
        clock.advance(1)
        threads.run_one()
    pending = [outcome(passwords.hash(b"12345678")) for _ in range(60)]
    assert 8 <= sum(not results for _, results in pending) <= 13


def test_nobody_waits_longer_than_the_bound(passwords, threads, clock):
    """Where others take the cores away, those who have waited for so long are declined, and never hashed."""
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


def test_a_job_whose_client_has_gone_is_not_hashed(passwords, threads):
    """Cancelling a job that waits takes it out of the queue."""
    pending = [outcome(passwords.hash(b"12345678")) for _ in range(4)]
    pending[2][0].cancel()
    assert pending[2][1][0].check(CancelledError)
    for _ in range(3):
        threads.run_one()
    assert threads.work == []
    assert [len(results) for _, results in pending] == [1, 1, 1, 1]


def test_a_cancelled_job_that_runs_frees_its_place_when_it_ends(passwords, threads):
    """A thread can't be stopped: its place counts as taken until it is done."""
    first, _, third = (outcome(passwords.hash(b"12345678")) for _ in range(3))
    first[0].cancel()
    assert len(threads.work) == 2
    threads.run_one()
    threads.run_one()
    threads.run_one()
    assert third[1][0].startswith("$2b$")


def test_a_failure_after_its_caller_was_cancelled_is_logged(passwords, threads, no_lost_failures):
    """Nobody waits for it any more, but a hash that bcrypt can't read is something to know of."""
    verifying, _ = outcome(passwords.verify(b"12345678", "not a hash"))
    verifying.cancel()
    threads.run_one()
    (logged,) = no_lost_failures
    assert "Invalid salt" in logged
    no_lost_failures.clear()


def test_a_malformed_stored_hash_frees_its_place(passwords, threads):
    """A hash that bcrypt can't read fails that login and nothing else."""
    for _ in range(5):
        _, results = outcome(passwords.verify(b"12345678", "not a hash"))
        threads.run_one()
        assert results[0].check(ValueError)
    _, results = outcome(passwords.hash(b"12345678"))
    threads.run_one()
    assert results[0].startswith("$2b$")


async def test_hashing_threads_are_polite_and_the_reactor_is_not(reactor, monkeypatch):
    """Hashing lowers the priority of its own thread only."""
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
    """That of the calling thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
