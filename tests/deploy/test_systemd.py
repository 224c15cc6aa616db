"""The units of deploy/systemd, as far as they can be tried without systemd as the first process."""

import itertools
import os
import re
import signal
import subprocess
import sys
from contextlib import closing, suppress

import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.deploy import units
from tests.deploy.activation import ActivatedProcess, listen
from tests.deploy.proxies import Crowd, start_nginx
from tests.harness.concurrency import wait_for
from tests.harness.constants import NO_DATA_DIR, PASSWORD, PATIENCE, ROOT, SECRET
from tests.harness.entry_points import SERVE, SOLISYNC
from tests.harness.http_requests import Connection
from tests.harness.postgres import truncate
from tests.harness.processes import (
    NICE,
    PROC,
    alive,
    children,
    clean_environment,
    postmaster,
    processes_in,
    stat_fields,
)
from tests.harness.service import environment


@pytest.fixture
def activate(logs):
    """Start a command with a listening socket; kill it at the end of the test."""
    started = []
    numbers = itertools.count(1)

    def activate(listening, *words, **variables):
        log = logs / f"activated-{os.getpid()}-{next(numbers)}.log"
        log.unlink(missing_ok=True)
        started.append(ActivatedProcess(listening, words, clean_environment(**variables), log))
        return started[-1]

    yield activate
    for process in started:
        if process.popen.poll() is None:
            process.stop(signal.SIGKILL)


@pytest.mark.needs("systemd-analyze")
def test_systemd_accepts_the_units(place):
    """`systemd-analyze verify` has no complaints, once the program is at its path."""
    version = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
    kind = "notify-reload" if int(version.split()[1]) >= 253 else "notify"
    files = []
    for unit in (units.SERVICE, units.SOCKET, units.BACKUP, units.TIMER):
        files.append(place / unit.name)
        files[-1].write_text(unit.read_text("utf-8").replace("/opt/solisync/bin", str(SOLISYNC[0].parent)))
        files[-1].write_text(files[-1].read_text("utf-8").replace("Type=notify-reload", f"Type={kind}"))
    words = ["systemd-analyze", "verify", *files]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.needs("systemd-analyze")
def test_exposure_of_the_service_is_at_most_as_documented(figure):
    """docs/deployment.md has the rating of `systemd-analyze security`."""
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", units.SERVICE]
    rated = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE).stdout
    score = re.search(r"Overall exposure level for solisync.service: ([0-9.]+)", rated)[1]
    figure(f"exposure level {score} of 10")
    documented = re.search(r"exposure level of\s+([0-9.]+)", (ROOT / "docs" / "deployment.md").read_text("utf-8"))[1]
    assert float(score) <= float(documented)


def niceness_below(pid):
    """Return the niceness values of all threads of the children of a process."""
    found = set()
    for child in children(pid):
        for thread in (PROC / str(child) / "task").glob("*"):
            with suppress(OSError):  # it has ended by now
                found.add(int(stat_fields(thread)[NICE]))
    return found


@pytest.mark.needs("systemd-analyze")
async def test_service_works_within_the_restrictions_of_its_unit(activate, place):
    """With the unit's environment and socket it makes a database, serves, reloads, stops and starts again."""
    state, credentials = place / "state", place / "credentials"
    state.mkdir()
    credentials.mkdir()
    (credentials / "jwt-secret").write_text(SECRET)
    variables = units.environment(credentials) | {"SOLISYNC_DATA_DIR": str(state)}
    path = place / "http.sock"
    command = (sys.executable, "-m", "tests.deploy.sandbox", state, *SOLISYNC)

    def ask(*request):
        with closing(Connection(unix=path)) as connection:
            return connection.ask(*request)

    def run(listening):
        process = activate(listening, *command, **variables)
        wait_for(lambda: process.log.count(" is ready") >= 2)
        assert ask("GET", "/health/ready").json == {"status": "ready"}
        assert ask("POST", "/api/auth/register", {"username": "ann", "password": PASSWORD}).status == 200
        # hashing has the lowest priority; a thread sets it itself, a moment after its start
        wait_for(lambda: niceness_below(process.pid) == {0, 10})
        server = postmaster(state)
        os.kill(process.pid, signal.SIGHUP)
        wait_for(lambda: "replaced all workers" in process.log)
        os.kill(server, signal.SIGKILL)
        wait_for(lambda: "restarting it" in process.log)
        wait_for(lambda: ask("GET", "/health/ready").status == 200)
        assert process.stop() == 0
        assert "Traceback" not in process.log
        assert not processes_in(state)
        again = activate(listening, *command, **variables)
        wait_for(lambda: ask("GET", "/health/ready").status == 200)
        assert ask("POST", "/api/auth/login", {"username": "ann", "password": PASSWORD}).status == 200
        assert again.stop() == 0

    listening = listen(path)
    try:
        await deferToThread(run, listening)
    finally:
        listening.close()


@pytest.mark.needs("nginx", "openssl")
async def test_restart_refuses_no_connection(activate, launch, place, shared_dsn, reactor, figure):
    """The socket stays while the service restarts: clients wait, or get a 503 for a moment."""
    truncate(shared_dsn)
    listening = listen(place / "http.sock")
    variables = environment(shared_dsn, **units.environment() | {"SOLISYNC_DATA_DIR": NO_DATA_DIR})
    del variables["JWT_SECRET_FILE"]

    def start():
        process = activate(listening, *SERVE, **variables)
        wait_for(lambda: process.log.count(" is ready") >= 2)
        return process

    try:
        process = await deferToThread(start)
        proxy = await deferToThread(start_nginx, launch, place, place / "http.sock")
        crowd = Crowd(proxy)
        for _ in range(2):
            await deferLater(reactor, 0.5)
            assert await deferToThread(process.stop) == 0
            process = await deferToThread(start)
        await deferLater(reactor, 0.5)
        outcomes = await deferToThread(crowd.stop)
        figure(f"2 restarts: {outcomes}")
        assert crowd.wrong == []
        assert set(outcomes) <= {200, 401, 503}
        assert outcomes[200] > 50
        assert await deferToThread(process.stop) == 0
        assert not alive(process.pid)
    finally:
        listening.close()
