"""The log of the embedded server: bounded, without statements, and read for the reason when the server dies.

Source: docs/operations.md "The database", docs/security.md "Logs".
"""

import re
import threading
from contextlib import suppress

import psycopg2
import pytest
from twisted.logger import LogLevel, capturedLogs, formatEvent

from solisync.embedded import server_log
from solisync.embedded.data_directory import DataDirectory
from solisync.embedded.server import EmbeddedPostgres
from solisync.embedded.server_log import ServerLog
from tests.harness.concurrency import until
from tests.harness.postgres import connect, lock_waiters, run_sql
from tests.harness.processes import kill, postmaster

STATEMENT = b"""12:00 [7] PANIC:  could not write to file "pg_wal/xlogtemp.7": No space left on device
12:00 [7] STATEMENT:  BEGIN; UPDATE users
\tSET password_hash = '$2b$12$canary'
\tWHERE username = 'ann'
12:00 [1] LOG:  server process (PID 7) was terminated by signal 6: Aborted
"""
FULL_DISK = """12:00 [9] LOG:  redo starts at 0/16ED4A0
12:00 [8] FATAL:  the database system is not yet accepting connections
12:00 [9] FATAL:  could not write to file "pg_wal/xlogtemp.9": No space left on device
12:00 [1] LOG:  startup process (PID 9) exited with exit code 1
12:00 [1] LOG:  terminating any other active server processes
12:00 [1] LOG:  shutting down due to startup process failure
12:00 [1] LOG:  database system is shut down
"""


@pytest.fixture
def log(tmp_path):
    """The log of an empty data directory, limited to 1,000 bytes."""
    return ServerLog(DataDirectory(tmp_path), 1_000)


def append(log, text):
    with log.open() as file:
        file.write(text)


def content(log):
    return log._directory.log.read_bytes()


async def test_log_has_no_statement_of_a_connection_that_is_cut(reactor, initialized, place):
    """The server logs no statement of an ended connection or of a killed process."""
    server = EmbeddedPostgres(reactor=reactor, data_dir=initialized(place), options=("fsync=off",))
    server.claim()
    await server.start()

    def change():
        with suppress(psycopg2.Error):
            run_sql(server.dsn, "UPDATE names SET name = 'canary'")

    threads = [threading.Thread(target=change) for _ in range(2)]
    try:
        run_sql(server.dsn, "CREATE TABLE names (name text)")
        run_sql(server.dsn, "INSERT INTO names VALUES ('ann')")
        holder = connect(server.dsn)
        holder.cursor().execute("BEGIN; SELECT 1 FROM names FOR UPDATE")
        for thread in threads:
            thread.start()
        await until(reactor, lambda: len(lock_waiters(server.dsn)) == 2)
        ended, killed = (waiter.pid for waiter in lock_waiters(server.dsn))
        run_sql(server.dsn, "SELECT pg_terminate_backend(%s)", (ended,))
        await until(reactor, lambda: len(lock_waiters(server.dsn)) == 1)
        kill(killed)
        await until(reactor, lambda: b"terminated by signal 9" in (place / "postgresql.log").read_bytes())
    finally:
        for thread in threads:
            thread.join()
        await server.stop()
    said = (place / "postgresql.log").read_text("utf-8")
    assert "terminating connection due to administrator command" in said
    assert "canary" not in said


def test_statement_of_a_panic_is_blanked(log):
    """The server logs the statement of a PANIC with any settings; it stays in the log for a moment only."""
    append(log, b"12:00 [1] LOG:  before\n")
    append(log, STATEMENT)
    log.tidy()
    assert b"canary" not in content(log)
    assert b"UPDATE" not in content(log)
    assert len(content(log)) == len(b"12:00 [1] LOG:  before\n" + STATEMENT)
    for line in (b"LOG:  before\n", b"No space left on device\n", b"terminated by signal 6: Aborted\n"):
        assert line in content(log)


def test_statement_that_a_killed_service_left_is_blanked(log):
    """The first look after a start blanks what the killed service had no time for."""
    log._directory.log.write_bytes(STATEMENT)
    log.open().close()
    assert b"canary" not in content(log)


def test_log_is_bounded(log):
    """The end of a log that is too long becomes the older part, and the server keeps writing."""
    with log.open() as server:
        for number in range(50):
            server.write(b"12:00 [1] LOG:  line %d\n" % number * 10)
            server.flush()
            log.tidy()
        server.write(b"12:00 [1] LOG:  the last line\n")
    older = log._directory.log.with_suffix(".log.1")
    assert 1_000 <= len(content(log)) + older.stat().st_size <= 2_000
    assert content(log).endswith(b"LOG:  the last line\n")
    assert b"\0" not in content(log)  # no hole where text was
    assert b"LOG:  line 4" in older.read_bytes()
    assert older.stat().st_mode & 0o777 == 0o600


def test_log_is_bounded_on_a_full_disk(log, monkeypatch):
    """Without room for the older part, there is none."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(server_log.shutil, "copyfileobj", full)
    append(log, b"x" * 2_000)
    log.tidy()
    assert content(log) == b""


def test_link_in_place_of_the_older_part_is_not_followed(log, tmp_path):
    """The link is replaced."""
    (tmp_path / "target").write_text("canary")
    (tmp_path / "postgresql.log.1").symlink_to(tmp_path / "target")
    append(log, b"x" * 2_000)
    log.tidy()
    assert (tmp_path / "target").read_text() == "canary"
    assert not (tmp_path / "postgresql.log.1").is_symlink()


async def test_server_that_does_not_start_again_is_logged_once(reactor, initialized, place):
    """The service tries until the server runs, and logs each reason once, with the line that names the cause."""
    server = EmbeddedPostgres(reactor=reactor, data_dir=initialized(place), options=("fsync=off",))
    server.claim()
    await server.start()
    try:
        with capturedLogs() as events:
            settings = place / "postgresql" / "postgresql.conf"
            before = settings.read_text()
            settings.write_text("nonsense = on\n")
            old = postmaster(place)
            kill(old)
            log = place / "postgresql.log"
            await until(reactor, lambda: log.read_bytes().count(b"unrecognized configuration parameter") >= 3)
            settings.write_text(before)
            await until(reactor, lambda: postmaster(place) not in (old, None))
    finally:
        await server.stop()
    said = [formatEvent(event) for event in events if event["log_level"] is LogLevel.error]
    assert len(said) == 2
    assert "has stopped" in said[0]
    assert "nonsense" in said[1]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (FULL_DISK, r'LOG:  redo starts at \S+ / FATAL:  could not write to file "\S+": No space left on device'),
        (
            "12:00 [1] LOG:  unrecognized parameter\n12:00 [1] FATAL:  errors\n",
            "LOG:  unrecognized parameter / FATAL.*",
        ),
        ("12:00 [1] LOG:  received SIGHUP\n", "LOG:  received SIGHUP"),
        ("Segmentation fault\n", "Segmentation fault"),
        ("", "it gave none"),
    ],
    ids=["disk", "settings", "log", "other", "nothing"],
)
def test_reason_ends_with_the_error(log, said, reason):
    """The reason covers what led to the last error, without the processes that the server ended because of it."""
    append(log, FULL_DISK.replace("No space", "Of another run").encode())
    append(log, said.encode())
    assert re.fullmatch(reason, log.reason())
