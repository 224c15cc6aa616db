"""Several processes at one port: none is missed when it dies, and all can be replaced without dropping a request."""

import http.client
import os
import signal
import ssl as client_ssl
import sys
import time
from pathlib import Path

import pytest
from twisted.internet import ssl
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.supervisor import LIFELINE, READY, Worker
from tests.commands import SOLISYNC, TWISTD, alive, run, start, wait_for
from tests.conftest import PASSWORD, ROOT, SECRET, environment, free_port, ready, truncate
from tests.fire.load import REFUSED, Steady

PROC = Path("/proc")


def workers(process):
    """The process ids of a parent's workers."""
    children = (PROC / str(process.pid) / "task" / str(process.pid) / "children").read_text().split()
    return {int(child) for child in children if b"worker" in (PROC / child / "cmdline").read_bytes()}


def wait_until_ready(process, count):
    """Wait for so many workers to have got ready in all."""
    wait_for(lambda: process.log.count(" is ready") >= count, 20)


def replaced(process, times=1):
    """Wait until all workers have been replaced so many times."""
    wait_for(lambda: process.log.count("all workers are new") >= times, 60)


@pytest.mark.limit(90)
async def test_rolling_restarts_drop_no_request(serve, reactor, shared_dsn, full, figure):
    """While all workers are replaced, again and again, 200 requests a second are answered, every one."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    player = await process.player()
    before = workers(process)
    load = Steady(process.port, bearers=[player.tokens.access_token])
    rounds = 5 if full else 1
    for done in range(rounds):
        await deferLater(reactor, 0.5)
        os.kill(process.pid, signal.SIGHUP)
        await deferToThread(replaced, process, done + 1)
    await deferLater(reactor, 0.5)
    outcomes = await deferToThread(load.stop)
    figure(f"{rounds} rolling restarts of 2 workers: {outcomes}, {len(load.cut)} cut")
    assert load.cut == []
    assert set(outcomes) == {200}
    assert len(workers(process)) == 2
    assert not before & workers(process)
    assert process.stop() == 0


@pytest.mark.limit(90)
@pytest.mark.parametrize("count", [1, 2])
async def test_sigterm_cuts_no_request(serve, reactor, shared_dsn, full, figure, count):
    """A service that is stopped under 200 requests a second answers each whole, or refuses the connection."""
    truncate(shared_dsn)
    for _ in range(3 if full else 1):
        process = await serve(shared_dsn, SOLISYNC_WORKERS=str(count))
        player = await process.player(f"ann_{process.port}")
        load = Steady(process.port, bearers=[player.tokens.access_token], closing=True)
        await deferLater(reactor, 1)
        assert await deferToThread(process.stop) == 0
        outcomes = await deferToThread(load.stop)
        figure(f"SIGTERM, {count} process(es): {outcomes}, {len(load.cut)} cut, {load.made_again} made again")
        assert load.cut == []
        assert load.made_again < 3
        assert set(outcomes) <= {200, REFUSED}
        assert outcomes[200] > 50


@pytest.mark.limit(60)
async def test_a_worker_that_dies_is_replaced(serve, reactor, shared_dsn):
    """After a kill -9 of each of three workers, one after the other, there are three again, and the port stays open."""
    process = await serve(shared_dsn, SOLISYNC_WORKERS="3")
    await deferToThread(wait_until_ready, process, 3)
    first = workers(process)
    for number, victim in enumerate(sorted(first), 4):
        os.kill(victim, signal.SIGKILL)
        for _ in range(20):
            assert (await process.ask("GET", "/health")).status == 200
        await deferToThread(wait_until_ready, process, number)
    assert len(workers(process)) == 3
    assert not first & workers(process)
    assert process.log.count("ended by signal 9, starting another") == 3
    assert process.stop() == 0


@pytest.mark.limit(60)
async def test_all_workers_serve(serve, reactor, shared_dsn):
    """Connections made together are shared out among the workers."""
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    await deferToThread(wait_until_ready, process, 2)

    def used():
        return {pid: (PROC / str(pid) / "stat").read_text().split()[13] for pid in workers(process)}

    before = used()
    load = Steady(process.port, rate=400)
    await deferLater(reactor, 2)
    outcomes = await deferToThread(load.stop)
    assert set(outcomes) == {200}
    assert all(used()[pid] > ticks for pid, ticks in before.items())
    assert process.stop() == 0


@pytest.mark.limit(60)
async def test_workers_leave_with_their_parent(launch, reactor, place):
    """After a kill -9 of the parent its workers and its database go, and the next one starts at the same port."""
    data = place / "data"
    process = start(launch, *SOLISYNC, "--workers", "2", data_dir=data)
    await ready(reactor, process.client())
    left = workers(process)
    assert len(left) == 2
    process.stop(signal.SIGKILL)
    await deferToThread(wait_for, lambda: not any(map(alive, left)), 15)
    variables = {"SOLISYNC_LISTEN": f"tcp:{process.port}:interface=127.0.0.1", "SOLISYNC_WORKERS": "2"}
    again = start(launch, *SOLISYNC, data_dir=data, **variables)
    again.port, again.url = process.port, process.url
    await ready(reactor, again.client(), 30)
    assert again.stop() == 0


async def test_a_worker_leaves_even_if_the_signal_is_lost(reactor):
    """A new process has the handlers of its parent until it becomes a worker; the end of its input is never lost."""
    program = "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.write(4, b'r'); os.read(0, 1)"
    worker = Worker(counts=True)
    reactor.spawnProcess(
        worker, sys.executable, [sys.executable, "-c", program], childFDs={LIFELINE: "w", 1: 1, 2: 2, READY: "r"}
    )
    assert await worker.ready
    worker.leave()
    assert await worker.ended == 0


@pytest.mark.limit(60)
async def test_ctrl_c_ends_parent_and_workers_in_order(launch, reactor, place):
    """SIGINT to the whole process group, as a terminal sends it, ends with status 0 and leaves nothing."""
    process = start(launch, *SOLISYNC, "--workers", "2", data_dir=place / "data")
    await ready(reactor, process.client())
    left = workers(process)
    os.killpg(process.pid, signal.SIGINT)
    assert await deferToThread(process.popen.wait, 20) == 0
    assert not any(map(alive, left))
    assert "Traceback" not in process.log
    assert process.log.rstrip().endswith("Main loop terminated.")


@pytest.mark.limit(60)
async def test_a_second_sigterm_changes_nothing(serve, reactor, shared_dsn):
    """SIGTERM to every process of the group, and once more, is one stop in good order."""
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    os.killpg(process.pid, signal.SIGTERM)
    os.killpg(process.pid, signal.SIGTERM)
    assert await deferToThread(process.popen.wait, 20) == 0
    assert "Traceback" not in process.log


@pytest.mark.limit(60)
async def test_a_secret_that_has_changed_is_taken_up_by_new_workers(launch, reactor, shared_dsn, place):
    """After SIGHUP the workers sign with what the secret's file holds by then; a bad one leaves the old workers."""
    file = place / "secret"
    file.write_text(SECRET)
    port = free_port()
    variables = environment(shared_dsn, SOLISYNC_LISTEN=f"tcp:{port}:interface=127.0.0.1", JWT_SECRET_FILE=str(file))
    del variables["JWT_SECRET"]
    variables["SOLISYNC_WORKERS"] = "2"
    truncate(shared_dsn)
    process = launch(sys.executable, ROOT / "tests" / "serve.py", port=port, dsn=shared_dsn, **variables)
    await ready(reactor, process.client())
    token = (await process.player()).tokens.access_token
    file.write_text("short")
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(wait_for, lambda: "the old ones stay" in process.log, 20)
    assert "must hold at least 32 bytes" in process.log
    assert (await process.ask("GET", "/api/me", bearer=token)).status == 200
    file.write_text(SECRET[::-1])
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(replaced, process)
    assert (await process.ask("GET", "/api/me", bearer=token)).status == 401
    client = process.client()
    await client.login("ann", PASSWORD)
    assert (await process.ask("GET", "/api/me", bearer=client.tokens.access_token)).status == 200
    assert process.stop() == 0


@pytest.mark.limit(60)
async def test_workers_that_cannot_start_end_the_parent(launch, empty_database, postgres):
    """When no worker can start, the reason is in the log and the status is 1, as with a single process."""
    process = start(launch, *SOLISYNC, "--workers", "2", dsn=empty_database, JWT_SECRET_FILE=os.devnull, JWT_SECRET="")
    assert await deferToThread(process.popen.wait, 20) == 1
    assert "must hold at least 32 bytes" in process.log
    assert "Traceback" not in process.log


@pytest.mark.limit(60)
@pytest.mark.parametrize("door", [SOLISYNC, TWISTD], ids=["solisync", "twistd -n"])
async def test_a_unix_socket_outlives_its_workers(launch, reactor, shared_dsn, place, door):
    """Workers that come and go leave the socket's file and its mode alone; the end of the parent removes it."""
    path = place / "http.sock"
    process = start(launch, *door, "--workers", "2", dsn=shared_dsn, endpoint=f"unix:{path}:mode=660")
    await deferToThread(wait_until_ready, process, 2)
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(replaced, process)
    assert path.stat().st_mode & 0o777 == 0o660
    process.stop()
    assert not path.exists()
    assert "Traceback" not in process.log


@pytest.mark.limit(60)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from within Twisted, which makes the certificate
async def test_workers_speak_tls(launch, reactor, shared_dsn, place):
    """An `ssl:` endpoint is TLS at every worker, old or new."""
    port, pem = free_port(), place / "both.pem"
    pem.write_bytes(ssl.KeyPair.generate(size=2048).selfSignedCert(1, CN="localhost").dumpPEM())
    endpoint = f"ssl:{port}:interface=127.0.0.1:privateKey={pem}:certKey={pem}"
    process = start(launch, *SOLISYNC, "--workers", "2", dsn=shared_dsn, endpoint=endpoint)

    def statuses():
        context = client_ssl.create_default_context(cafile=str(pem))
        context.check_hostname = False
        context.verify_flags &= ~client_ssl.VERIFY_X509_STRICT
        connections = [http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10) for _ in range(10)]
        for connection in connections:
            connection.request("GET", "/health/ready")
        return [connection.getresponse().status for connection in connections]

    await deferToThread(wait_until_ready, process, 2)
    assert await deferToThread(statuses) == [200] * 10
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(replaced, process)
    assert await deferToThread(statuses) == [200] * 10
    assert process.stop() == 0


@pytest.mark.parametrize("words", [("--pidfile=here.pid", "solisync"), ("-n", "--logfile=here.log", "solisync")])
def test_workers_need_the_foreground(place, words):
    """twistd in the background, or with a log file of its own, says in one line what several workers need."""
    done = run(TWISTD[0], *words, JWT_SECRET=SECRET, SOLISYNC_WORKERS="2", cwd=place)
    assert done.status == 1
    assert [line for line in done.out + done.err if "several workers need the foreground" in line]
    assert "Traceback" not in "\n".join(done.out + done.err)


@pytest.mark.limit(60)
async def test_an_embedded_database_has_room_for_all(launch, reactor, place):
    """Four workers of 30 connections each, and a fifth while they are replaced, find room in the embedded database."""
    variables = {"SOLISYNC_DATABASE_CONNECTIONS": "30", "SOLISYNC_DATA_DIR": str(place / "data")}
    process = start(launch, *SOLISYNC, "--workers", "4", **variables)
    await ready(reactor, process.client(), 30)
    await deferToThread(wait_until_ready, process, 4)
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(replaced, process)
    began = time.monotonic()
    await ready(reactor, process.client())
    assert time.monotonic() - began < 10
    assert "too many" not in process.log
    assert "no connection" not in process.log
    assert process.stop() == 0
