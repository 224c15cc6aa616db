"""Sockets that systemd binds and passes on (`systemd:` in SOLISYNC_LISTEN; sd_listen_fds(3))."""

import os
import socket
import sys
import time

import pytest
from twisted.internet.threads import deferToThread

from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE, SECRET
from tests.harness.entry_points import SOLISYNC, TWISTD
from tests.harness.processes import free_port, run
from tests.harness.service import environment, ready
from tests.wire.cases import LAST
from tests.wire.sockets import exchange, parse

# Starts the service at the first connection, as systemd does for a socket unit.
ACTIVATE = """
import os, select, socket, sys
place, name, *words = sys.argv[1:]
if place.isdigit():
    listening = socket.create_server(("127.0.0.1", int(place)))
else:
    listening = socket.create_server(place, family=socket.AF_UNIX)
    os.chmod(place, 0o660)
select.select([listening], [], [])
os.dup2(os.dup(listening.fileno()), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES=name)
os.execv(words[0], words)
"""

ENTRY_POINTS = {"solisync": SOLISYNC, "twistd": TWISTD, "workers": (*SOLISYNC, "--workers", "2")}


def first_request(port):
    """Send a request as soon as a program listens there; wait for the answer without a limit."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return exchange(port, LAST)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize(
    ("name", "which"),
    [
        pytest.param("solisync", "index=0", marks=pytest.mark.long),  # a unix socket is found so, below
        pytest.param("solisync", "name=web", marks=pytest.mark.long),
        pytest.param("twistd", "index=0", marks=pytest.mark.long),
        ("twistd", "name=web"),
        pytest.param("workers", "index=0", marks=pytest.mark.long),
        pytest.param("workers", "name=web", marks=pytest.mark.long),
    ],
)
async def test_service_serves_on_a_systemd_socket(launch, reactor, shared_dsn, name, which):
    """Requests sent before the start are answered once the service runs."""
    port = free_port()
    variables = environment(shared_dsn, SOLISYNC_LISTEN=f"systemd:domain=INET:{which}")
    words = (sys.executable, "-c", ACTIVATE, port, "web", *ENTRY_POINTS[name])
    process = launch(*words, port=port, dsn=shared_dsn, **variables)
    (answer,) = parse(await deferToThread(first_request, port))
    assert answer.status == 200
    await ready(reactor, process.client())


@pytest.mark.parametrize("name", ["solisync", pytest.param("workers", marks=pytest.mark.long)])
async def test_systemd_unix_socket_stays_unchanged(launch, reactor, shared_dsn, place, name):
    """systemd uses the socket after the service has stopped, so the file and its mode stay."""
    path = place / "http.sock"
    variables = environment(shared_dsn, SOLISYNC_LISTEN="systemd:domain=UNIX:index=0")
    process = launch(sys.executable, "-c", ACTIVATE, path, "web", *ENTRY_POINTS[name], dsn=shared_dsn, **variables)

    def ask():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.fspath(path))
            connection.sendall(LAST)
            return b"".join(iter(lambda: connection.recv(65_536), b""))

    await deferToThread(wait_for, lambda: path.exists() and path.stat().st_mode & 0o777 == 0o660)
    assert (await deferToThread(ask)).startswith(b"HTTP/1.1 200 ")
    assert process.stop() == 0
    assert path.stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize("which", ["name=web", pytest.param("index=0", marks=pytest.mark.long)])
def test_service_without_its_systemd_socket_fails_in_one_line(which):
    """systemd has not started this service."""
    done = run(*SOLISYNC, JWT_SECRET=SECRET, SOLISYNC_LISTEN=f"systemd:domain=INET:{which}")
    assert done.status == 1
    (line,) = done.err
    assert line.startswith("solisync: SOLISYNC_LISTEN is not a listening endpoint")
    assert line.endswith("systemd has passed no such socket")
