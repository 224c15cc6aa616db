"""A locked, frozen or full database: answers are right and in time, and the service heals."""

import contextlib
import os
import resource
import subprocess
import time

import psycopg2
import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.embedded.programs import as_user
from tests.fire.acknowledged import Players
from tests.fire.servers import freeze, servers, thaw
from tests.harness.concurrency import until
from tests.harness.entry_points import SERVE, start
from tests.harness.postgres import connect, run_sql, truncate
from tests.harness.processes import alive, postmaster, processes_in
from tests.harness.service import ready

HEAL_SECONDS = 2.0
THAW_SECONDS = 5.0
SLACK = 10  # how much longer it may take where the machine is busy
MIB = 2**20


@pytest.fixture(scope="module")
def external(new_cluster):
    """A separate server with few connections."""
    with servers(cluster=new_cluster) as made:
        yield made.make_primary(max_connections=20)


@pytest.fixture
def serve_embedded(launch, reactor, initialized):
    """Start the service with its own database in a directory; resolve when it is ready."""
    started = []

    async def serve_embedded(data_dir):
        process = start(launch, *SERVE, data_dir=initialized(data_dir))
        process.dsn = f"host={data_dir}/run user=solisync dbname=postgres"
        started.append(process)
        await ready(reactor, process.client())
        return process

    yield serve_embedded
    for process in started:
        process.stop()


async def heals(reactor, players, since, seconds):
    """Return the seconds from `since` to the next acknowledged write."""
    return await until(reactor, lambda: players.wrote_after(since), SLACK * seconds) - since


@pytest.mark.parametrize(("connections", "status"), [(2, 503), (8, 500)], ids=["queue", "lock"])
async def test_locks_of_others_delay_requests_for_a_bounded_time(
    serve, shared_dsn, reactor, figure, connections, status
):
    """Six players push, and each push waits for a lock.

    With two connections, the other pushes wait for a connection for 2 s, and get a 503. With a connection for each
    push, it waits for the lock twice, for 4 s each, and gets a 500.
    """
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_DATABASE_CONNECTIONS=str(connections))
    players = Players(process)
    async with players.playing():
        await deferLater(reactor, 1)
        holder = connect(shared_dsn)
        await deferToThread(holder.cursor().execute, "BEGIN; SELECT FROM users FOR UPDATE")
        await until(reactor, lambda: players.statuses[status], SLACK * 10)
        holder.close()
        healed = await heals(reactor, players, time.monotonic(), HEAL_SECONDS)
        await deferLater(reactor, 0.5)
    figure(f"wrote {healed:.2f} s after the locks were gone; {players}")
    await deferToThread(players.check, shared_dsn)


@pytest.mark.parametrize("kind", ["external", "embedded"])
async def test_frozen_server_delays_requests_for_a_bounded_time(
    serve, serve_embedded, external, place, reactor, figure, kind
):
    """The service works again as soon as the server does."""
    if kind == "external":
        process, directory = await serve(external.dsn), external.directory
    else:
        process, directory = await serve_embedded(place), place / "postgresql"
    players = Players(process, 12)
    async with players.playing():
        await deferLater(reactor, 1)
        freeze(directory)
        try:
            await deferLater(reactor, 30)
        finally:
            thaw(directory)
        healed = await heals(reactor, players, time.monotonic(), THAW_SECONDS)
        await deferLater(reactor, 0.5)
    figure(f"{kind}: wrote {healed:.2f} s after the thaw; {players}")
    assert players.statuses[503]
    await deferToThread(players.check, process.dsn)


def take_all(server, taken):
    """Cut the service's connections, and take all connections of the server."""
    mine = connect(server.dsn)
    taken.append(mine)
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'solisync'"
    with mine.cursor() as cursor:
        cursor.execute("SHOW max_connections")
        most = int(cursor.fetchone()[0])
        while len(taken) < most:
            try:
                taken.append(psycopg2.connect(server.dsn))
            except psycopg2.OperationalError:
                cursor.execute(cut)


async def test_server_without_free_connections_makes_requests_503(serve, external, reactor, figure):
    """Other clients have taken all of max_connections."""
    process = await serve(external.dsn)
    players = Players(process)
    taken = []
    async with players.playing():
        await deferLater(reactor, 1)
        try:
            await deferToThread(take_all, external, taken)
            await deferLater(reactor, 20)
        finally:
            for connection in taken:
                connection.close()
        healed = await heals(reactor, players, time.monotonic(), HEAL_SECONDS)
        await deferLater(reactor, 0.5)
    figure(f"wrote {healed:.2f} s after there were connections again; {players}")
    assert players.statuses[503]
    assert "no connection to the database" in process.log
    await deferToThread(players.check, external.dsn)


def forbid_writing(directory):
    """Fail every write of a server, as on a full disk, until it is started again."""
    owner = directory.stat()
    user = (owner.st_uid, owner.st_gid) if os.geteuid() == 0 else None  # even root may not always do it for another
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    for pid in processes_in(directory):

        def limit(pid=pid):
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (8192, most))

        subprocess.run(["true"], check=True, preexec_fn=limit, **as_user(user))


async def test_embedded_server_that_cannot_write_is_restarted(serve_embedded, place, reactor, figure):
    """The server ends when it fails to write its log; after the restart it has every acknowledged write."""
    process = await serve_embedded(place)
    players = Players(process)
    async with players.playing():
        await deferLater(reactor, 1)
        old = postmaster(place)
        forbid_writing(place / "postgresql")
        await until(reactor, lambda: not alive(old))
        healed = await heals(reactor, players, time.monotonic(), HEAL_SECONDS)
        await deferLater(reactor, 0.5)
    figure(f"wrote {healed:.2f} s after the server had gone; {players}")
    await deferToThread(players.check, process.dsn)


@pytest.fixture
def small_disk(place):
    """A file system of 200 MiB."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,mode=755", "tmpfs", place], check=False)
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(file):
    """Fill the file system."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as ballast:
        while ballast.write(bytes(MIB)):
            pass


@pytest.mark.parametrize("what", ["tables", "log"])
async def test_full_disk_loses_no_acknowledged_write(small_disk, serve_embedded, reactor, figure, what):
    """Without room nothing is acknowledged that isn't stored. With room again, even a server that had died serves."""
    data_dir, ballast = small_disk / "data", small_disk / "ballast"
    process = await serve_embedded(data_dir)
    players = Players(process)
    async with players.playing():
        await deferLater(reactor, 1)
        old = postmaster(data_dir)
        await deferToThread(fill, ballast)
        if what == "log":  # the next segment has no room: the server ends itself, and can't even recover
            with contextlib.suppress(psycopg2.Error):
                await deferToThread(run_sql, process.dsn, "SELECT pg_switch_wal()")
            await until(reactor, lambda: not alive(old))
        else:
            await until(reactor, lambda: players.statuses[503])
        await deferLater(reactor, 15)
        ballast.unlink()
        healed = await heals(reactor, players, time.monotonic(), HEAL_SECONDS)
        await deferLater(reactor, 2)
    figure(f"{what}: wrote {healed:.2f} s after there was room again; {players}")
    await deferToThread(players.check, process.dsn)
