"""Logs: lines as text and as JSON, and a complete audit trail without repetitions."""

import io
import json
import os
import re
import signal
import socket
import subprocess
import time
from unittest.mock import Mock
from uuid import uuid4

import pytest
from hypothesis import given
from twisted.internet.threads import deferToThread
from twisted.logger import Logger, capturedLogs, formatEvent
from twisted.python.failure import Failure

from solisync.commands.smoke import PIXEL
from solisync.process import logs
from solisync.process.audit import audit
from solisync.web.wire.access_log import AccessLog
from tests.harness.concurrency import wait_for
from tests.harness.constants import NO_DATA_DIR, PASSWORD, ROOT, SECRET
from tests.harness.entry_points import SOLISYNC, TAC, TWISTD, serving, start
from tests.harness.http_requests import ask
from tests.harness.payloads import replay
from tests.harness.postgres import connect, lock_waiters, truncate
from tests.harness.processes import run
from tests.harness.service import ready, refused
from tests.harness.strategies import texts


def logged(style, emit):
    """Return the line, or lines, that an observer writes for the events of `emit`."""
    out = io.StringIO()
    emit(Logger("tests", observer=logs.observer(style, out)))
    return out.getvalue()


def objects(text):
    """Return lines in JSON as objects."""
    return [json.loads(line) for line in text.splitlines()]


def audited(lines):
    """Return the audit trail in these lines: events and their players."""
    return [(line["event"], line.get("user_id")) for line in lines if line["source"] == "solisync.audit"]


class Logging:
    """A service that logs in JSON, and the log since this object was made."""

    def __init__(self, process):
        self.process = process
        self._before = len(process.log)

    @property
    def log(self):
        return self.process.log[self._before :]

    async def lines(self):
        """Return its lines as objects, including those of all finished requests."""
        last = str(uuid4())
        await self.process.ask("GET", "/health", headers={"X-Request-Id": last})
        await deferToThread(wait_for, lambda: f'"{last}"' in self.log)
        return objects(self.log)


@pytest.fixture(scope="module")
def json_service(reactor, logs, shared_dsn):
    with serving(reactor, logs, shared_dsn, SOLISYNC_LOG_FORMAT="json") as process:
        yield process


@pytest.fixture
def service(json_service):
    """The service of all these tests, with an empty database, once its log has the lines of the test before."""
    truncate(json_service.dsn)
    marker = str(uuid4())
    ask(json_service, "GET", f"/{marker}")
    wait_for(lambda: marker in json_service.log)
    return Logging(json_service)


@given(text=texts())
def test_json_line_is_one_line_with_any_content(text):
    """No text breaks out of its line, and all of it can be read back."""
    line = logged("json", lambda log: log.info("{reason}", reason=text))
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert json.loads(line)["reason"] == text


@given(text=texts())
def test_text_line_cannot_be_forged(text):
    """Each further line of a message is indented, and control characters are removed."""
    written = logged("text", lambda log: log.warn("{reason}", reason=text))
    first, *more = written.removesuffix("\n").split("\n")
    assert " warn tests: " in first
    assert all(line.startswith("\t") for line in more)
    assert len(written.splitlines()) == 1 + len(more)
    assert "\x1b" not in written


@pytest.mark.parametrize("template", ["{reason!r} {number:.1f}", "{call()}", "{missing}", "{", "{reason.no}", "{{}}"])
def test_messages_are_formatted_by_twisted(template):
    """Formats may have values, calls, missing fields and errors."""
    event = {"log_format": template, "reason": "so\n", "number": 1.25, "call": lambda: "called"}
    assert logs.event_text(event) == formatEvent(event)


def test_unknown_fields_are_not_logged():
    """An event may carry a secret beside the known fields."""
    line = logged("json", lambda log: log.info("hello", password="hidden", token="hidden", status=200))
    assert "hidden" not in line
    assert json.loads(line)["status"] == 200


@pytest.mark.parametrize("style", logs.FORMATS)
def test_failure_has_its_traceback(style):
    """JSON has all its lines in one field."""

    def emit(log):
        try:
            getattr(log, "forged\n2026 line")
        except AttributeError:
            log.failure("it failed", Failure())

    written = logged(style, emit)
    assert "AttributeError" in written
    assert "\n2026" not in written
    if style == "json":
        assert "Traceback" in json.loads(written)["traceback"]


def test_level_leaves_out_lower_lines_but_not_the_audit_trail():
    out = io.StringIO()
    observe = logs.observer("json", out, "error")
    for log in (Logger("tests", observer=observe), Logger(logs.AUDIT, observer=observe)):
        log.info("info")
        log.warn("warn")
        log.error("error")
    written = [(line["source"], line["message"]) for line in objects(out.getvalue())]
    assert written == [("tests", "error"), *((logs.AUDIT, level) for level in logs.LEVELS)]


def test_json_line_of_the_console_names_the_admin():
    with capturedLogs() as events:
        AccessLog(metrics=Mock(), seconds=Mock()).answered(
            client="unix",
            user_id=None,
            admin="ann",
            method=b"GET",
            path=b"/api/admin/me",
            route="/api/admin/me",
            status=200,
            seconds=0.001,
            streamed=False,
            request_id="r-1",
        )
    out = io.StringIO()
    logs.observer("json", out)(events[0])
    (line,) = objects(out.getvalue())
    assert (line["admin"], line["client"], line["status"]) == ("ann", "unix", 200)


def test_documented_command_counts_the_requests_of_each_client(tmp_path):
    """docs/operations.md finds the client that sends too much in the journal, here a file."""
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    command = re.search(r"^ {4}journalctl[^|]*(\|[^\n]*\n +sort.*)$", page, re.M)[1]
    with capturedLogs() as events:
        log = AccessLog(metrics=Mock(), seconds=Mock())
        for client, path in (("192.0.2.1", b"/a"), ("2001:db8::7", b"/: GET /b"), ("192.0.2.1", b"/c")):
            log.answered(
                client=client,
                user_id=None,
                admin=None,
                method=b"GET",
                path=path,
                route="/",
                status=200,
                seconds=0.001,
                streamed=False,
                request_id="r-1",
            )
        audit("login failed", user_id=None)
    with (tmp_path / "journal").open("w") as out:
        for event in events:
            logs.observer("text", out)(event)
    counted = subprocess.run(
        ["sh", "-c", f"cat {tmp_path}/journal {command}"], capture_output=True, check=True, text=True
    )
    assert counted.stdout.split() == ["2", "192.0.2.1", "1", "2001:db8::7"]


@pytest.mark.parametrize(("style", "number"), [("text", 0), ("json", 1)])
def test_documented_fail2ban_filter_finds_the_client_of_a_failed_login(style, number):
    """Each line of the filter in docs/security.md matches a log of one format, where <ADDR> is an address."""
    (block,) = re.findall(r"^ {4}failregex = (.*\n +.*)$", (ROOT / "docs" / "security.md").read_text("utf-8"), re.M)
    pattern = block.splitlines()[number].strip().replace("<ADDR>", r"(?P<addr>[0-9a-f:.]+)")
    out = io.StringIO()
    for client in ("203.0.113.7", "2001:db8::7"):
        token = logs.serving.set({"client": client, "request_id": "r-1"})
        try:
            with capturedLogs() as events:
                audit("login failed", user_id=None)
                audit("login", user_id=None)
            for event in events:
                logs.observer(style, out)(event)
        finally:
            logs.serving.reset(token)
    found = [re.search(pattern, line) for line in out.getvalue().splitlines()]
    assert [match and match["addr"] for match in found] == ["203.0.113.7", None, "2001:db8::7", None]


def test_unwritable_log_is_ignored():
    """The service works on with a full disk or a closed terminal."""
    out = io.StringIO()
    observe = logs.observer("json", out)
    out.close()
    Logger("tests", observer=observe).info("hello")


async def test_each_request_has_one_access_line(service):
    """The line has the client, the route and the result. Query strings and tokens are not in it."""
    process = service.process
    player = await process.player()
    token, user_id = player.tokens.access_token, (await player.me()).id
    await process.ask("GET", "/api/replays/recent?limit=7&secret=hunter2", headers={"X-Request-Id": "req-1"})
    await process.ask(
        "GET", f"/avatars/{user_id}.png", headers={"X-Request-Id": "req-2"}, bearer=token, address="10.9.8.7"
    )
    await process.ask("PATCH", "/api/nowhere", headers={"X-Request-Id": "req-3"})
    lines = {line.get("request_id"): line for line in await service.lines() if "status" in line}
    assert lines["req-1"]["route"] == lines["req-1"]["path"] == "/api/replays/recent"
    expected = {
        "method": "GET",
        "route": "/avatars/{user_id}.{extension}",
        "path": f"/avatars/{user_id}.png",
        "status": 404,
        "client": "10.9.8.7",
        "user_id": user_id,
    }
    assert expected.items() <= lines["req-2"].items()
    assert lines["req-2"]["milliseconds"] > 0
    assert (lines["req-3"]["status"], lines["req-3"].get("route")) == (404, None)
    for secret in ("hunter2", token, PASSWORD):
        assert secret not in service.log


async def test_access_line_is_short(service):
    """A long path is cut; a method has at most 16 characters, or is UNKNOWN.

    A pipe that several processes write to keeps 4,096 bytes together: a longer line could be torn.
    """
    await service.process.ask("GET", "/" + "x" * 15_000)
    for length in (16, 17, 9_000):
        assert (await service.process.ask("A" * length, "/health")).status == 405
    lines = await service.lines()
    assert any(line.get("status") == 404 for line in lines)
    assert [line["method"] for line in lines if line.get("status") == 405] == ["A" * 16, "UNKNOWN", "UNKNOWN"]
    assert max(map(len, service.log.splitlines())) < 4_096


async def test_request_of_a_client_that_hangs_up_has_an_access_line(service):
    """The status is 499. An incomplete request has no line."""
    process = service.process
    blocker = connect(process.dsn)
    blocker.autocommit = False
    blocker.cursor().execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")

    def hang_up(data):
        with socket.create_connection(("127.0.0.1", process.port)) as connection:
            connection.sendall(data)
            time.sleep(0.3)

    body = b'{"username": "ann", "password": "correct horse"}'
    head = b"POST /api/auth/login HTTP/1.1\r\nHost: x\r\nX-Request-Id: %b\r\nContent-Length: %d\r\n\r\n"
    await deferToThread(hang_up, head % (b"whole", len(body)) + body)
    await deferToThread(hang_up, head % (b"half", len(body)) + body[:10])
    await deferToThread(wait_for, lambda: '"whole"' in service.log)
    blocker.rollback()
    blocker.close()
    await deferToThread(wait_for, lambda: '"event": "login failed"' in service.log)
    lines = [line for line in await service.lines() if line.get("request_id") in ("whole", "half")]
    assert [(line["request_id"], line["status"]) for line in lines if "status" in line] == [("whole", 499)]


async def test_audit_trail_has_each_event_once(service):
    """Events are registrations, logins, failed logins, refreshes, refused refreshes and deletions."""
    process = service.process
    player = await process.player("ann")
    user_id = (await player.me()).id
    await player.login("ann", PASSWORD)
    spent = player.tokens.refresh_token
    await player.refresh()
    assert (await process.ask("POST", "/api/auth/refresh", body={"refresh_token": spent})).status == 401
    assert (await process.ask("POST", "/api/auth/refresh", body={"refresh_token": "nonsense"})).status == 401
    await refused(process.client().login("ann", "wrong password"))
    await refused(process.client().login("a_password_typed_too_early", "wrong password"))
    token = player.tokens.access_token
    replay_id = await player.upload_replay(replay())
    for listed in (False, True):
        await player.set_listed(replay_id, listed)
    await player.opt_in("Ann")
    await player.opt_out()
    await player.upload_avatar(PIXEL, "image/png")
    for _ in range(2):
        await player.delete_avatar()
        await process.ask("DELETE", f"/api/replays/{replay_id}", bearer=token)
    for method in ("HEAD", "GET", "GET"):
        await process.ask(method, "/api/me/export", bearer=token)
    await player.delete_account()
    await process.ask("DELETE", "/api/account", bearer=token)
    assert audited(await service.lines()) == [
        ("register", user_id),
        ("login", user_id),
        ("refresh", user_id),
        ("refresh refused", user_id),
        ("refresh refused", None),
        ("login failed", user_id),
        ("login failed", None),
        ("replay unlisted", user_id),
        ("replay listed", user_id),
        ("opted in", user_id),
        ("opted out", user_id),
        ("avatar changed", user_id),
        ("avatar removed", user_id),
        ("replay deleted", user_id),
        ("exported", user_id),
        ("account deleted", user_id),
    ]
    assert "a_password_typed_too_early" not in service.log


async def test_audit_trail_has_a_refresh_committed_after_a_hang_up(service):
    process = service.process
    token = (await process.player("ann")).tokens.refresh_token
    blocker = connect(process.dsn)
    blocker.autocommit = False
    blocker.cursor().execute("SELECT FROM users WHERE username = 'ann' FOR UPDATE")

    def hang_up():
        body = json.dumps({"refresh_token": token}).encode()
        head = f"POST /api/auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", process.port)) as connection:
            connection.sendall(head.encode() + body)
            wait_for(lambda: lock_waiters(process.dsn))

    await deferToThread(hang_up)
    await deferToThread(wait_for, lambda: '"status": 499' in service.log)
    assert "refresh" not in dict(audited(objects(service.log)))
    blocker.rollback()
    blocker.close()
    await deferToThread(wait_for, lambda: '"event": "refresh"' in service.log)
    assert [event for event, _ in audited(await service.lines())] == ["register", "refresh"]


@pytest.mark.parametrize(
    "command",
    [
        (*SOLISYNC, "--workers", "2"),
        pytest.param(SOLISYNC, marks=pytest.mark.long),
        pytest.param(TWISTD, marks=pytest.mark.long),
    ],
    ids=["workers", "solisync", "twistd"],
)
async def test_every_line_is_json_with_the_setting(launch, reactor, shared_dsn, command):
    """The first and the last line are JSON too, at every entry point."""
    process = start(launch, *command, "--log-format", "json", dsn=shared_dsn)
    await ready(reactor, process.client())
    process.stop()
    lines = objects(process.log)
    assert any("listens on" in line["message"] for line in lines)
    assert all({"time", "level", "source", "pid", "message"} <= line.keys() for line in lines)


@pytest.mark.long
async def test_daemon_logs_json_to_its_file(place, reactor, shared_dsn):
    """`twistd --logfile` gets the same lines."""
    log, pid = place / "solisync.log", place / "solisync.pid"
    words = (TWISTD[0], f"--logfile={log}", f"--pidfile={pid}", "solisync", "--log-format", "json")
    variables = {"JWT_SECRET": SECRET, "DATABASE_URL": shared_dsn, "SOLISYNC_DATA_DIR": NO_DATA_DIR}
    variables["SOLISYNC_LISTEN"] = f"unix:{place}/http.sock"
    assert (await deferToThread(lambda: run(*words, cwd=place, **variables))).status == 0
    await deferToThread(wait_for, lambda: "the database is open" in log.read_text())
    daemon = int(pid.read_text())
    os.kill(daemon, signal.SIGTERM)
    await deferToThread(wait_for, lambda: not pid.exists())
    assert all(json.loads(line) for line in log.read_text().splitlines())


@pytest.mark.parametrize("words", [SOLISYNC, TWISTD])
async def test_quiet_service_logs_the_audit_trail_alone(launch, reactor, shared_dsn, words):
    """It logs no line for requests, and none about its start, with each entry point."""
    truncate(shared_dsn)
    variables = {"SOLISYNC_ACCESS_LOG": "off", "SOLISYNC_LOG_LEVEL": "warn", "SOLISYNC_STREAMS": "10"}
    process = start(launch, *words, dsn=shared_dsn, **variables)
    await ready(reactor, process.client())
    await process.player()
    process.stop()
    lines = process.log.splitlines()
    assert [f" {logs.AUDIT}: register" in line for line in lines] == [True], lines


@pytest.mark.parametrize("variable", [{"SOLISYNC_LOG_FORMAT": "json"}, {"SOLISYNC_LOG_LEVEL": "error"}])
def test_tac_file_refuses_logs_of_its_own(place, variable):
    """A .tac file can't know where twistd logs. The error names another way."""
    done = run(*TAC, JWT_SECRET=SECRET, **variable, cwd=place)
    assert done.status == 1
    assert any("need `twistd solisync` instead of a .tac file" in line for line in done.out + done.err)


async def test_no_row_of_the_database_is_logged(server, logs, no_lost_failures):
    """PostgreSQL's error quotes the refused row, with the password's hash. The log has the error without the row."""
    account = {"username": "ann", "password": PASSWORD}
    server.sql("ALTER TABLE users ADD CONSTRAINT unexpected CHECK (username <> 'ann')")
    try:
        assert (await server.ask("POST", "/api/auth/register", body=account)).status == 500
    finally:
        server.sql("ALTER TABLE users DROP CONSTRAINT unexpected")
    (logged,) = no_lost_failures
    assert 'violates check constraint "unexpected"' in logged
    assert "$2b$" not in logged + (logs / "tests.log").read_text("utf-8", "replace")
    no_lost_failures.clear()


@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.long)])
async def test_start_logs_urls_and_the_data_directory(launch, reactor, initialized, place, workers):
    data_dir = initialized(place / "data")
    process = start(launch, *SOLISYNC, f"--workers={workers}", data_dir=data_dir)
    await ready(reactor, process.client())
    process.stop()
    assert f" serving {process.url}, with the API reference at {process.url}/api/docs\n" in process.log
    assert f" the data is in {data_dir}\n" in process.log
    assert "log_legacy" not in process.log
