"""Lock files of a killed server, whose process id another process has: as after the kill of a container."""

import os
import signal
import subprocess

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from solisync.embedded.data_directory import SOCKET, DataDirectory
from solisync.embedded.programs import as_user
from solisync.embedded.server import EmbeddedPostgres
from tests.harness.concurrency import until
from tests.harness.constants import SECRET
from tests.harness.entry_points import SOLISYNC
from tests.harness.postgres import run_sql
from tests.harness.processes import children, kill, postmaster, run

VARIABLES = {"JWT_SECRET": SECRET, "SOLISYNC_LISTEN": "tcp:0:interface=127.0.0.1"}


def embedded(reactor, data_dir):
    return EmbeddedPostgres(reactor=reactor, data_dir=data_dir, options=("fsync=off",))


def locks_in(data_dir):
    return [data_dir / "postgresql" / "postmaster.pid", data_dir / "run" / f"{SOCKET}.lock"]


async def locks_of_an_ended_server(reactor, data_dir):
    """Return the texts of the lock files of a server that has ended since."""
    server = embedded(reactor, data_dir)
    server.claim()
    await server.start()
    texts = [lock.read_text() for lock in locks_in(data_dir)]
    await server.stop()
    return texts


@pytest.fixture
def data_dir(initialized, place):
    return initialized(place / "data")


@pytest.fixture
def neighbour(data_dir):
    """The id of a living process of the server's user."""
    owner = (data_dir / "postgresql").stat()
    user = as_user((owner.st_uid, owner.st_gid)) if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "1000"], **user) as process:
        yield process.pid
        process.kill()


def leave(data_dir, texts):
    """Write lock files as a killed server of the owner of the directory leaves them."""
    for lock, text in zip(locks_in(data_dir), texts, strict=True):
        lock.write_text(text)
        owner = lock.parent.stat()
        if os.geteuid() == 0:
            os.chown(lock, owner.st_uid, owner.st_gid)


def with_pid(pid, texts):
    return [f"{pid}\n{text.partition(chr(10))[2]}" for text in texts]


@pytest.mark.parametrize("left", ["the id of another program", "empty files"])
async def test_server_starts_with_the_locks_of_a_killed_one(reactor, data_dir, left, request):
    """PostgreSQL refuses a lock with the id of any living process, and an empty lock, which a kill can leave."""
    locks = await locks_of_an_ended_server(reactor, data_dir)
    leave(data_dir, ["", ""] if left == "empty files" else with_pid(request.getfixturevalue("neighbour"), locks))
    server = embedded(reactor, data_dir)
    server.claim()
    try:
        await server.start()
        assert run_sql(server.dsn, "SELECT 1") == [(1,)]
    finally:
        await server.stop()


@pytest.mark.parametrize("words", [["status"], ["backup", "--into", "{place}"], ["doctor"]])
async def test_commands_work_with_the_locks_of_a_killed_server(reactor, data_dir, neighbour, words, place):
    leave(data_dir, with_pid(neighbour, await locks_of_an_ended_server(reactor, data_dir)))
    words = [word.format(place=place) for word in words]
    done = await deferToThread(run, *SOLISYNC, *words, SOLISYNC_DATA_DIR=data_dir, **VARIABLES)
    assert "lock file" not in done.said
    assert done.status == 0, done.said


async def test_locks_of_a_running_server_stay(reactor, data_dir):
    """The server of a killed service takes a while to end."""
    server = embedded(reactor, data_dir)
    server.claim()
    await server.start()
    try:
        before = [lock.read_text() for lock in locks_in(data_dir)]
        DataDirectory(data_dir).take_over_stale_locks()
        assert [lock.read_text() for lock in locks_in(data_dir)] == before
    finally:
        await server.stop()


async def test_locks_with_the_id_of_the_server_of_another_directory_are_taken_over(reactor, initialized, place):
    here, there = place / "here", place / "there"
    locks = await locks_of_an_ended_server(reactor, initialized(here))
    other = embedded(reactor, initialized(there))
    other.claim()
    await other.start()
    try:
        leave(here, with_pid(postmaster(there), locks))
        DataDirectory(here).take_over_stale_locks()
        assert [lock.read_text() for lock in locks_in(here)] == with_pid(os.getpid(), locks)
    finally:
        await other.stop()


async def test_server_waits_for_processes_of_a_killed_one(reactor, data_dir, neighbour):
    """A process of the killed server still uses the shared memory, although another program has the id in the lock."""
    first = embedded(reactor, data_dir)
    first.claim()
    await first.start()
    locks = [lock.read_text() for lock in locks_in(data_dir)]
    (stuck, *_) = children(postmaster(data_dir))
    os.kill(stuck, signal.SIGSTOP)
    os.kill(postmaster(data_dir), signal.SIGKILL)
    await first.stop()
    leave(data_dir, with_pid(neighbour, locks))
    second = embedded(reactor, data_dir)
    second.claim()
    starting = Deferred.fromCoroutine(second.start())
    try:
        await until(reactor, lambda: "shared memory block" in (data_dir / "postgresql.log").read_text())
        assert not starting.called
        os.kill(stuck, signal.SIGKILL)
        await starting
        assert run_sql(second.dsn, "SELECT 1") == [(1,)]
    finally:
        kill(stuck)
        await second.stop()
