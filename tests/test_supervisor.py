"""Several processes at one port: the supervisor replaces workers that end, and all of them on SIGHUP."""

import errno
import http.client
import os
import signal
import ssl as client_ssl
import sys
from unittest.mock import Mock

import pytest
import pytest_twisted
from twisted.internet import ssl
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import deferToThread
from twisted.logger import capturedLogs, formatEvent

from solisync.process import daemon
from solisync.supervisor import LIFELINE, READY, Supervisor, Worker
from tests.harness.concurrency import until, wait_for
from tests.harness.constants import PASSWORD, PATIENCE, SECRET
from tests.harness.entry_points import SERVE, SOLISYNC, TWISTD, start
from tests.harness.postgres import truncate
from tests.harness.processes import alive, free_port, replaced, run, wait_until_ready, workers
from tests.harness.service import environment, ready


async def test_killed_worker_is_replaced(serve, reactor, shared_dsn):
    """After a kill -9 of each of two workers, one after the other, there are two again, and the port stays open."""
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    await deferToThread(wait_until_ready, process, 2)
    first = workers(process)
    for number, victim in enumerate(sorted(first), 3):
        os.kill(victim, signal.SIGKILL)
        for _ in range(20):
            assert (await process.ask("GET", "/health")).status == 200
        await deferToThread(wait_until_ready, process, number)
    assert len(workers(process)) == 2
    assert not first & workers(process)
    assert process.log.count("ended by signal 9, starting another") == 2
    assert process.stop() == 0


async def test_workers_end_with_their_parent(launch, reactor, initialized, place):
    """After a kill -9 of the parent its database ends, too. The next service starts at the same port."""
    data = initialized(place / "data")
    process = start(launch, *SOLISYNC, "--workers", "2", data_dir=data)
    await ready(reactor, process.client())
    left = workers(process)
    assert len(left) == 2
    process.stop(signal.SIGKILL)
    await deferToThread(wait_for, lambda: not any(map(alive, left)))
    again = start(launch, *SOLISYNC, data_dir=data, endpoint=f"tcp:{process.port}:interface=127.0.0.1")
    again.port, again.url = process.port, process.url
    await ready(reactor, again.client())
    assert again.stop() == 0


@pytest.mark.long
async def test_workers_start_although_a_descriptor_is_beyond_the_limit(launch, reactor, shared_dsn):
    """A shell with a low `ulimit -n` may pass on descriptors that it has opened before."""
    program = (
        "import os, resource, sys; os.dup2(0, 251); resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200));"
        " os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = start(launch, sys.executable, "-c", program, *SOLISYNC, "--workers", "2", dsn=shared_dsn)
    await ready(reactor, process.client())
    assert "Bad file descriptor" not in process.log
    assert process.stop() == 0


async def test_worker_ends_even_if_the_signal_is_lost(reactor):
    """A new process has its parent's handlers until it becomes a worker. The end of its input is never lost."""
    program = "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.write(4, b'r'); os.read(0, 1)"
    worker = Worker(counts=True)
    worker.start(reactor, [sys.executable, "-c", program], {}, {LIFELINE: "w", 1: 1, 2: 2, READY: "r"})
    assert await worker.ready
    worker.leave()
    assert await worker.ended == 0


@pytest.fixture
def supervisor_of(reactor):
    """Make a supervisor of two workers that run a Python program; end them at the end of the test."""
    made = []

    def supervisor_of(program, *words):
        supervisor = Supervisor(
            settings=Mock(workers=2, stop_seconds=PATIENCE),
            reactor=reactor,
            environ={},
            embedded=None,
            metrics=Mock(),
            command=[sys.executable, "-c", program, *map(str, words)],
        )
        supervisor._sockets = {}
        supervisor.manager = Mock()
        made.append(supervisor)
        return supervisor

    yield supervisor_of
    for supervisor in made:
        supervisor._stopping = True
        retired = gatherResults([Deferred.fromCoroutine(supervisor._retire(each)) for each in supervisor._workers])
        pytest_twisted.blockon(retired)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("1.2.0", "1.2.0", "version 1.2.0, as before"),
        ("1.2.0", "1.3.0", "version 1.3.0, before 1.2.0"),
        ("1.2.0", "ready", "version 1.1.0 or older, before 1.2.0"),
    ],
)
async def test_reload_says_which_version_the_workers_have(reactor, supervisor_of, place, before, after, says):
    """The installed version may not be the one that the parent's command starts; 1.1.0 reports no version."""
    version = place / "version"
    version.write_text(before)
    supervisor = supervisor_of("import os, sys; os.write(4, open(sys.argv[1], 'rb').read()); os.read(0, 1)", version)
    supervisor._fill()
    await gatherResults([worker.ready for worker in supervisor._workers])
    version.write_text(after)
    with capturedLogs() as events:
        supervisor.replace_all()
        await until(reactor, lambda: not supervisor._replacing)
    assert f"replaced all workers: {says}" in map(formatEvent, events)
    assert supervisor.manager.ready.call_args.args == (f"serving with 2 workers of {says.partition(',')[0]}",)


async def test_reload_while_no_worker_serves_ends_when_one_does(reactor, supervisor_of, place):
    """Until then systemd waits. A reload that finds no worker at all has nothing to replace."""
    may_start = place / "may start"
    may_start.touch()
    program = "import os, sys\nif not os.path.exists(sys.argv[1]): sys.exit(3)\nos.write(4, b'1.2.0'); os.read(0, 1)"
    supervisor = supervisor_of(program, may_start)
    supervisor._fill()
    await gatherResults([worker.ready for worker in supervisor._workers])
    may_start.unlink()
    for worker in supervisor._workers:
        worker.signal(signal.SIGKILL)
    await until(reactor, lambda: not any(worker.was_ready for worker in supervisor._workers))
    supervisor.replace_all()
    await until(reactor, lambda: not supervisor._replacing)
    assert supervisor.manager.ready.call_count == 1  # of the start
    may_start.touch()
    await until(reactor, lambda: supervisor.manager.ready.call_count == 2)


async def test_old_worker_stays_when_no_new_one_can_be_started(supervisor_of, monkeypatch, place):
    """After the first successor the system has no room for another process."""
    heard = place / "heard"
    program = (
        "import os, sys; os.write(4, b'r')\n"
        "while word := os.read(0, 1): open(sys.argv[1], 'ab').write(b'%d%b ' % (os.getpid(), word))"
    )
    supervisor = supervisor_of(program, heard)
    supervisor._fill()
    old = [*supervisor._workers]
    assert await gatherResults([worker.ready for worker in old]) == [True, True]
    start_process = Worker.start

    def start_while_there_is_room(worker, *arguments):
        if len(supervisor._workers) > 2 or old[0] not in supervisor._workers:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        start_process(worker, *arguments)

    monkeypatch.setattr(Worker, "start", start_while_there_is_room)
    supervisor.replace_all()
    last = f"{old[1].pid}+"
    await deferToThread(wait_for, lambda: heard.exists() and last in heard.read_text())
    assert heard.read_text().split()[-1] == last
    assert old[1] in supervisor._workers
    monkeypatch.undo()


async def test_ctrl_c_ends_parent_and_workers_in_order(launch, reactor, initialized, place):
    """SIGINT to the whole process group, as a terminal sends it, ends with status 0 and leaves no process."""
    process = start(launch, *SOLISYNC, "--workers", "2", data_dir=initialized(place / "data"))
    await deferToThread(wait_until_ready, process, 2)
    left = workers(process)
    os.killpg(process.pid, signal.SIGINT)
    assert await deferToThread(process.popen.wait, PATIENCE) == 0
    assert not any(map(alive, left))
    assert "Traceback" not in process.log
    assert process.log.rstrip().endswith("Main loop terminated.")


async def test_second_sigterm_changes_nothing(serve, reactor, shared_dsn):
    """Two SIGTERM to every process of the group are one orderly stop."""
    process = await serve(shared_dsn, SOLISYNC_WORKERS="2")
    await deferToThread(wait_until_ready, process, 2)  # a worker that is starting notices the end of its input instead
    os.killpg(process.pid, signal.SIGTERM)
    os.killpg(process.pid, signal.SIGTERM)
    assert await deferToThread(process.popen.wait, PATIENCE) == 0
    assert "Traceback" not in process.log


def test_second_sigterm_in_the_handler_of_the_first_changes_nothing():
    """The second signal may come before the handler is replaced: then one handler handles both."""
    stops = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGTERM, lambda number, frame: stops.append(number))
    try:
        daemon._handle_one_signal()
        handle = signal.getsignal(signal.SIGTERM)
        for _ in range(2):
            handle(signal.SIGTERM, None)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert stops == [signal.SIGTERM]


@pytest.mark.long
async def test_new_workers_use_a_changed_secret(launch, reactor, shared_dsn, place):
    """After SIGHUP the workers sign with the new content of the secret's file. A bad secret keeps the old workers."""
    file = place / "secret"
    file.write_text(SECRET)
    port = free_port()
    variables = environment(shared_dsn, SOLISYNC_LISTEN=f"tcp:{port}:interface=127.0.0.1", JWT_SECRET_FILE=str(file))
    del variables["JWT_SECRET"]
    variables["SOLISYNC_WORKERS"] = "2"
    truncate(shared_dsn)
    process = launch(*SERVE, port=port, dsn=shared_dsn, **variables)
    await ready(reactor, process.client())
    token = (await process.player()).tokens.access_token
    file.write_text("short")
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(wait_for, lambda: "keeping the old workers" in process.log)
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


async def test_workers_that_cannot_start_end_the_parent(launch, empty_database, postgres):
    """The log has the reason, and the status is 1, as with a single process."""
    process = start(launch, *SOLISYNC, "--workers", "2", dsn=empty_database, JWT_SECRET_FILE=os.devnull, JWT_SECRET="")
    assert await deferToThread(process.popen.wait, PATIENCE) == 1
    assert "must hold at least 32 bytes" in process.log
    assert "Traceback" not in process.log


@pytest.mark.parametrize(
    "command", [SOLISYNC, pytest.param(TWISTD, marks=pytest.mark.long)], ids=["solisync", "twistd -n"]
)
async def test_unix_socket_outlives_its_workers(launch, reactor, shared_dsn, place, command):
    """New and ended workers leave the socket's file and its mode unchanged; the end of the parent removes it."""
    path = place / "http.sock"
    process = start(launch, *command, "--workers", "2", dsn=shared_dsn, endpoint=f"unix:{path}:mode=660")
    await deferToThread(wait_until_ready, process, 2)
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(replaced, process)
    assert path.stat().st_mode & 0o777 == 0o660
    process.stop()
    assert not path.exists()
    assert "Traceback" not in process.log


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from within Twisted, which makes the certificate
async def test_workers_speak_tls(launch, reactor, shared_dsn, place):
    """Every worker serves an `ssl:` endpoint over TLS, even after a reload."""
    port, pem = free_port(), place / "both.pem"
    pem.write_bytes(ssl.KeyPair.generate(size=2048).selfSignedCert(1, CN="localhost").dumpPEM())
    endpoint = f"ssl:{port}:interface=127.0.0.1:privateKey={pem}:certKey={pem}"
    process = start(launch, *SOLISYNC, "--workers", "2", dsn=shared_dsn, endpoint=endpoint)

    def statuses():
        context = client_ssl.create_default_context(cafile=str(pem))
        context.check_hostname = False
        context.verify_flags &= ~client_ssl.VERIFY_X509_STRICT
        connections = [
            http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=PATIENCE) for _ in range(10)
        ]
        for connection in connections:
            connection.request("GET", "/health/ready")
        return [connection.getresponse().status for connection in connections]

    await deferToThread(wait_until_ready, process, 2)
    assert await deferToThread(statuses) == [200] * 10
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(replaced, process)
    assert await deferToThread(statuses) == [200] * 10
    assert process.stop() == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--pidfile=here.pid", "solisync"),
        pytest.param(("-n", "--logfile=here.log", "solisync"), marks=pytest.mark.long),
    ],
)
def test_workers_need_the_foreground(place, words):
    """twistd in the background, or with its own log file, reports in one line what several workers need."""
    done = run(TWISTD[0], *words, JWT_SECRET=SECRET, SOLISYNC_WORKERS="2", cwd=place)
    assert done.status == 1
    assert [line for line in done.out + done.err if "several workers need the foreground" in line]
    assert "Traceback" not in "\n".join(done.out + done.err)


def test_workers_start_when_the_parent_handles_signals():
    """A parent whose reactor doesn't run yet starts no worker, because it handles no SIGTERM yet."""
    reactor = Mock()
    supervisor = Supervisor(
        settings=Mock(workers=2, metrics_listen=None, data_dir=None),
        reactor=reactor,
        environ={},
        embedded=None,
        metrics=Mock(),
        command=["false"],
    )
    supervisor._log_start = supervisor._on_hangup = Mock()
    supervisor.startService()
    assert supervisor._workers == []
    reactor.callWhenRunning.assert_called_once_with(supervisor._fill)
