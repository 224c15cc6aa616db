"""The reports to systemd: a start, a reload and a stop, each when it has happened."""

import os
import signal
import socket
import time

import pytest
from twisted.internet.threads import deferToThread

from solisync import __version__
from solisync.process.service_manager import ServiceManager
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC, TWISTD, start
from tests.harness.service import ready

REPORT = 4_096


@pytest.fixture
def manager(place):
    """A socket that receives reports, as systemd's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(place / "notify"))
        listening.settimeout(PATIENCE)
        yield listening


def report(manager):
    """Return the next report as a dict."""
    return dict(line.split("=", 1) for line in manager.recv(REPORT).decode().splitlines())


async def next_with(manager, name):
    """Return the next report with this field, skipping others."""
    while name not in (found := await deferToThread(report, manager)):
        pass
    return found


@pytest.mark.parametrize(
    ("words", "serving"),
    [((*SOLISYNC, "--workers=2"), f"serving with 2 workers of version {__version__}"), ((*TWISTD,), "serving")],
)
async def test_service_reports_start_reload_and_stop(launch, manager, shared_dsn, words, serving):
    """READY comes once the port answers and the schema is there. A reload begins after its signal."""
    process = start(launch, *words, dsn=shared_dsn, NOTIFY_SOCKET=manager.getsockname())
    assert await next_with(manager, "READY") == {"READY": "1", "STATUS": serving}
    assert (await process.ask("GET", "/health/ready")).status == 200
    sent = time.monotonic_ns() // 1000
    os.kill(process.popen.pid, signal.SIGHUP)
    reloading = await next_with(manager, "RELOADING")
    assert sent <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert (await next_with(manager, "READY"))["STATUS"].startswith(serving)
    process.stop()
    assert "STOPPING" in await next_with(manager, "STOPPING")


async def test_failed_reload_ends_with_the_reason(launch, manager, reactor, shared_dsn, place):
    """The old workers serve, and `systemctl status` shows that the reload failed."""
    secret = place / "secret"
    secret.write_text("s" * 32)
    words = ("--workers=2", f"--jwt-secret-file={secret}")
    process = start(launch, *SOLISYNC, *words, dsn=shared_dsn, NOTIFY_SOCKET=manager.getsockname(), JWT_SECRET="")
    await next_with(manager, "READY")
    await ready(reactor, process.client())
    secret.write_text("too short")
    os.kill(process.popen.pid, signal.SIGHUP)
    assert (await next_with(manager, "READY"))["STATUS"].startswith("the last reload failed")


async def test_service_without_a_database_reports_why_it_waits(launch, manager, reactor, place):
    process = start(launch, *SOLISYNC, dsn=f"host={place} dbname=none", NOTIFY_SOCKET=manager.getsockname())
    status = await next_with(manager, "STATUS")
    assert status["STATUS"].startswith("waiting for the database: ")
    assert "READY" not in status
    assert process.stop() == 0


def test_abstract_address_begins_with_a_null_byte():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0solisync-{os.getpid()}")
        ServiceManager(f"@solisync-{os.getpid()}").stopping()
        assert report(listening)["STOPPING"] == "1"


def test_lost_service_manager_is_ignored(place):
    ServiceManager(str(place / "nothing")).stopping()
