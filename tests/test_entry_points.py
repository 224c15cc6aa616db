"""Every entry point of solisync, as a process: its start, its errors, and its end."""

import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import closing, nullcontext, suppress
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.python.usage import UsageError

from solisync import __version__
from solisync.client import ApiError, Client
from solisync.commands.main import check_options, command_parser, main
from solisync.commands.smoke import smoke
from solisync.errors import FatalError
from solisync.settings.table import TABLE
from solisync.tap import Options, makeService
from solisync.web.shared_cache import CoalescingCache
from tests.harness.concurrency import until, wait_for
from tests.harness.constants import BIN, NO_DATA_DIR, PATIENCE, ROOT, SECRET
from tests.harness.entry_points import BEGIN, MODULE, SOLISYNC, TAC, TWISTD, anew, start
from tests.harness.error_codes import table
from tests.harness.http_requests import Connection
from tests.harness.postgres import truncate
from tests.harness.processes import alive, clean_environment, free_port, kill, postmaster, processes_in, run, terminal
from tests.harness.service import Reachable, ready
from tests.harness.service import start as start_service

ENTRY_POINTS = {"solisync": anew(SOLISYNC), "python -m": MODULE, "twistd -n": anew(TWISTD), "twistd -ny": anew(TAC)}

LONG = pytest.mark.long

# Routes without a step in the smoke check.
NOT_PLAYED = {
    "GET /health",  # the other name of one that it asks
    "GET /health/ready",
    "GET /api/docs",  # documents that no database or proxy changes
    "GET /api/openapi.json",
    "POST /api/auth/logout",  # ways to end or to continue a session of which it tries another
    "DELETE /api/sessions",
    "DELETE /api/session",
    "POST /api/session/refresh",
    "PUT /api/session/password",
    "POST /api/session/recover",
    "POST /api/session/reset",
    "POST /api/auth/guest",  # guests, whom a service may refuse
    "PUT /api/me/guest-key",
    "POST /api/me/claim",
    "POST /api/me/join",
    "GET /api/boards/daily/{day}",  # boards, of which it reads one
    "GET /api/boards/deals/{seed}/{draw_mode}",
}

ASYNCIO = (BIN / "twistd", "--reactor=asyncio", "-n", "--pidfile=", "solisync")


@pytest.fixture
def daemonize(place):
    """Run twistd as a daemon, which is killed at the end of the test; return what the shell saw."""

    def daemonize(*words, before=(), **variables):
        files = f"--pidfile={place}/twistd.pid", f"--logfile={place}/twistd.log"
        return run(BIN / "twistd", *files, *before, *(words or ["solisync"]), cwd=place, **variables)

    yield daemonize
    for pid in [*processes_in(place)]:
        kill(pid)


async def served(reactor, service):
    """Wait until a service is ready, and request its health under all four names."""
    await ready(reactor, service.client())
    for path in ("/health", "/api/health"):
        assert (await service.ask("GET", path)).json.items() >= {"status": "ok", "version": __version__}.items()
    for path in ("/health/ready", "/api/health/ready"):
        assert (await service.ask("GET", path)).json == {"status": "ready"}


# Opening and closing.


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("solisync", signal.SIGINT),
        ("twistd -ny", signal.SIGTERM),
        pytest.param("solisync", signal.SIGTERM, marks=LONG),
        pytest.param("python -m", signal.SIGTERM, marks=LONG),
        pytest.param("python -m", signal.SIGINT, marks=LONG),
        pytest.param("twistd -n", signal.SIGTERM, marks=LONG),
        pytest.param("twistd -n", signal.SIGINT, marks=LONG),
        pytest.param("twistd -ny", signal.SIGINT, marks=LONG),
    ],
)
async def test_entry_point_serves_until_a_signal_stops_it(reactor, launch, shared_dsn, name, how):
    """SIGHUP is ignored, with a log line that reloading needs workers. The stop is orderly."""
    service = start(launch, *ENTRY_POINTS[name], dsn=shared_dsn)
    await served(reactor, service)
    os.kill(service.pid, signal.SIGHUP)
    await until(reactor, lambda: "ignored SIGHUP: only a service with workers can reload" in service.log)
    await served(reactor, service)
    assert service.stop(how) in (0, -how)
    assert "stopped" in service.log
    assert "Traceback" not in service.log
    assert SECRET not in service.log


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=LONG)])
async def test_closed_terminal_stops_the_service_in_its_foreground(reactor, launch, shared_dsn, workers):
    """The kernel sends SIGHUP then. Otherwise the service would keep the port."""
    with terminal() as (ours, theirs):
        service = start(launch, *BEGIN, "foreground", *SOLISYNC, "--workers", workers, dsn=shared_dsn, stdin=theirs)
        theirs.close()
        await ready(reactor, service.client())
        ours.close()
        await until(reactor, lambda: service.popen.poll() is not None)
    assert service.popen.returncode == 0
    assert "stopped" in service.log


@pytest.mark.parametrize("how", ["nohup", pytest.param("setsid", marks=LONG)])
async def test_service_of_setsid_or_nohup_outlives_its_terminal(reactor, launch, shared_dsn, how):
    """Such a service takes SIGHUP for a reload, even after the terminal has closed."""
    with terminal() as (ours, theirs):
        service = start(launch, *BEGIN, how, *SOLISYNC, dsn=shared_dsn, stdin=theirs)
        theirs.close()
        await ready(reactor, service.client())
        ours.close()
    os.kill(service.pid, signal.SIGHUP)
    await until(reactor, lambda: service.popen.poll() is not None or "ignored SIGHUP" in service.log)
    assert service.popen.poll() is None
    await ready(reactor, service.client())
    assert service.stop() == 0


@pytest.mark.parametrize(
    "command", [SOLISYNC, pytest.param(ASYNCIO, marks=LONG)], ids=["solisync", "twistd --reactor=asyncio"]
)
async def test_entry_point_starts_the_embedded_database(reactor, launch, initialized, place, command):
    """The service has no DATABASE_URL. It stops PostgreSQL when it ends itself, on any reactor."""
    service = start(launch, *command, data_dir=initialized(place / "data"))
    await ready(reactor, service.client())
    assert processes_in(place)
    assert service.stop() in (0, -signal.SIGTERM)
    assert not processes_in(place)


async def test_twistd_daemon_serves_and_stops(reactor, initialized, daemonize, place):
    """`twistd solisync` returns once it serves, respects --pidfile, --logfile and --umask, and ends on SIGTERM."""
    port = free_port()
    words = "solisync", f"--listen=tcp:{port}:interface=127.0.0.1", f"--data-dir={initialized(place / 'data')}"
    started = daemonize(*words, before=("--umask=027",), JWT_SECRET=SECRET)
    assert (started.status, started.out, started.err) == (0, [], [])
    pid_file = place / "twistd.pid"
    assert stat.S_IMODE(pid_file.stat().st_mode) == 0o640
    pid = int(pid_file.read_text())
    try:
        await served(reactor, Reachable(port))
        assert not Path(f"/proc/{pid}/fd/0").samefile("/proc/self/fd/1")
        again = daemonize(*words, JWT_SECRET=SECRET)
        assert again.status == 1
        assert "Another twistd server is running" in " ".join(again.err)
    finally:
        kill(pid, signal.SIGTERM)
        wait_for(lambda: not alive(pid))
    assert not pid_file.exists()
    assert not processes_in(place)
    assert "stopped" in (place / "twistd.log").read_text("utf-8")


@LONG
async def test_twistd_sheds_privileges(reactor, launch, place):
    """With --uid and --gid no process stays root, not even the embedded server. A second start works as well."""
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    given = (f"--uid={user.pw_uid}", f"--gid={user.pw_gid}") if os.geteuid() == 0 else ()
    for _ in range(2):
        command = BIN / "twistd", "-n", "--pidfile=", *given, "solisync"
        service = start(launch, *command, data_dir=place / "data")
        await ready(reactor, service.client())
        assert {uid for _, uid in processes_in(place).values()} == {user.pw_uid}
        status = Path(f"/proc/{service.pid}/status").read_text("utf-8")
        assert f"Uid:\t{user.pw_uid}\t{user.pw_uid}\t{user.pw_uid}" in status
        assert f"Gid:\t{user.pw_gid}\t{user.pw_gid}\t{user.pw_gid}" in status
        service.stop()
        assert not processes_in(place)


def test_twistd_sets_home_to_that_of_its_user(monkeypatch, shared_dsn):
    """libpq looks for its files there. Without --uid, HOME stays the same."""
    user = pwd.getpwnam("nobody")
    for name, value in {"JWT_SECRET": SECRET, "DATABASE_URL": shared_dsn, "HOME": "/root"}.items():
        monkeypatch.setenv(name, value)
    options = Options()
    for uid, home in ((None, "/root"), (os.getuid(), "/root"), (user.pw_uid, user.pw_dir), (2**31 - 2, None)):
        options.parent = {"uid": uid}
        makeService(options)
        assert os.environ.get("HOME") == home


async def test_stop_waits_for_at_most_stop_seconds(reactor, launch, shared_dsn):
    """The request under way never ends."""
    service = start(launch, *SOLISYNC, "--stop-seconds=0.2", dsn=shared_dsn)
    await ready(reactor, service.client())
    with closing(socket.create_connection(("127.0.0.1", service.port))) as client:
        client.sendall(b"POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        await service.client().live()
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < 10  # the default of --stop-seconds
    assert "cut 1 connection" in service.log


# Help.


@pytest.mark.parametrize("command", [SOLISYNC, pytest.param(TWISTD, marks=LONG)], ids=["solisync", "twistd"])
def test_help_names_every_setting(command):
    """--help lists every option with its variable and its default, and all other variables. --version works, too."""
    shown = run(*command, "--help")
    assert (shown.status, shown.err) == (0, [])
    text = " ".join(" ".join(shown.out).split())
    for word in ("JWT_SECRET", "DATABASE_URL", "--listen", "tcp:8080", "--no-prepared-statements"):
        assert word in text
    assert {setting.variable for setting in TABLE} <= set(re.findall(r"\w+", text))
    version = run(*command, "--version")
    assert (version.status, version.err) == (0, [])
    assert __version__ in version.out[0]


@pytest.mark.parametrize(
    "words",
    [["--bogus"], ["--jwt-secret", "abc"], ["extra"], ["--migrate", "--smoke", "http://x"]],
    ids=["unknown", "abbreviated", "argument", "two commands"],
)
def test_usage_errors_exit_with_2(words, capsys):
    """An unknown or abbreviated option ends `solisync` with the usage."""
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert capsys.readouterr().err.startswith("usage: solisync")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--wrkers 3", "there is no option --wrkers: did you mean --workers?"),
        ("--workrs=3", "there is no option --workrs: did you mean --workers?"),
        ("--jwt-secret=canary", "there is no option --jwt-secret: did you mean --jwt-secret-file?"),
        ("--data-dir users --lisen x", "there is no option --lisen: did you mean --listen?"),
        ("users list --lmit 3", "there is no option --lmit: did you mean --limit?"),
        ("serve --lisen x", "there is no option --lisen: did you mean --listen?"),
        ("--zzz", "there is no option --zzz"),
        ("users lst", "there is no command 'lst': did you mean list?"),
        ("--data-dir users sttus", "there is no command 'sttus': did you mean status?"),
        ("help users lst", "there is no command 'lst': did you mean list?"),
        ("zzz", "there is no command 'zzz'"),
        ("--migrate serve", "give only one command"),
        ("--smoke http://x help", "give only one command"),
    ],
)
def test_misspelt_word_is_named_with_a_suggestion(words, says, capsys):
    """The words after it don't matter. A value that may be a secret isn't repeated."""
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(f": error: {says}")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("--wrkers=3", "option --wrkers not recognized: did you mean --workers?"),
        ("--no-page", ""),
        ("--zzz", "option --zzz not recognized"),
        ("--listen", "option --listen requires argument"),
    ],
)
def test_misspelt_option_of_twistd_is_named_with_a_suggestion(word, says):
    """twistd accepts a unique abbreviation."""
    with pytest.raises(UsageError, match=f"^{re.escape(says)}$") if says else nullcontext():
        Options().parseOptions([word])


@pytest.mark.parametrize("words", ["--reset-password users --data-dir /x", "users show --json -- --ann", "status"])
def test_value_of_an_option_is_not_read_as_a_word(words):
    """The value may be the name of a command."""
    check_options(command_parser(), words.split())


def test_help_command_equals_the_help_option(capsys):
    """`solisync help WORDS` prints the --help of that command."""
    for words in ([], ["users"], ["users", "list"], ["serve"]):
        shown = []
        for each in (["help", *words], [*words, "--help"]):
            with pytest.raises(SystemExit, match="0"):
                main(each)
            shown.append(capsys.readouterr().out)
        assert shown[0] == shown[1]


# Errors are reported before anything starts.

WRONG = {
    "JWT_SECRET": "short",
    "DATABASE_URL": "canary nonsense",
    "SOLISYNC_LISTEN": "bogus:",
    "SOLISYNC_TRUSTED_PROXIES": "10.0.0.0/8, everybody",
    "SOLISYNC_CORS_ORIGINS": "play.example.org",
    "SOLISYNC_DATABASE_CONNECTIONS": "0",
    "SOLISYNC_STOP_SECONDS": "soon",
    "SOLISYNC_PREPARED_STATEMENTS": "maybe",
}


@pytest.mark.parametrize(
    "command",
    [
        SOLISYNC,
        pytest.param(TWISTD, marks=LONG),
        pytest.param(TAC, marks=LONG),
        pytest.param((BIN / "twistd", "solisync"), marks=LONG),
        (BIN / "twistd", "-y", ROOT / "solisync.tac"),
    ],
    ids=["solisync", "twistd -n", "twistd -ny", "daemon", "daemon -y"],
)
def test_all_wrong_settings_are_reported_together(place, command):
    """Each entry point names every wrong setting on its own line, without a traceback, and starts nothing."""
    refused = run(*command, cwd=place, SOLISYNC_DATA_DIR=place / "data", **WRONG)
    assert (refused.status, refused.out) == (1, [])
    lines = [line for line in refused.err if line]
    assert sorted(line.split()[1] for line in lines) == sorted(WRONG)
    assert all(line.startswith("solisync: ") for line in lines)
    assert "canary" not in " ".join(lines)
    assert list(place.iterdir()) == []


def test_missing_secret_is_one_line(place):
    """Without a signing secret nothing starts."""
    refused = run(*SOLISYNC, SOLISYNC_DATA_DIR=place / "data")
    assert (refused.status, len(refused.err)) == (1, 1)
    assert "JWT_SECRET is not set" in refused.err[0]


@pytest.mark.parametrize(
    ("command", "word"), [(SOLISYNC, ["serve"]), pytest.param(TWISTD, [], marks=LONG)], ids=["solisync", "twistd -n"]
)
async def test_options_override_variables(reactor, launch, shared_dsn, place, command, word):
    """An option wins even over a wrong variable, before or after `serve`."""
    (place / "secret").write_text(SECRET)
    (place / "dsn").write_text(shared_dsn + "\r\n")
    port = free_port()
    words = [
        f"--listen=tcp:{port}:interface=127.0.0.1",
        f"--jwt-secret-file={place}/secret",
        f"--database-url-file={place}/dsn",
        "--stop-seconds=1",
        "--no-prepared-statements",
    ]
    given = WRONG | {"SOLISYNC_DATABASE_CONNECTIONS": "1"} | dict.fromkeys(FINE, "")
    service = start(launch, *command, *words[:3], *word, *words[3:], **given)
    await served(reactor, Reachable(port))
    service.stop()


@pytest.mark.parametrize(
    "command", [(*SOLISYNC, "--workers=2"), pytest.param(TWISTD, marks=LONG)], ids=["solisync", "twistd -n"]
)
async def test_env_file_sets_service_workers_and_commands(reactor, launch, shared_dsn, place, command):
    port = free_port()
    file = place / "solisync.env"
    lines = f"JWT_SECRET='{SECRET}'", f'DATABASE_URL="{shared_dsn}"', f"SOLISYNC_LISTEN=tcp:{port}:interface=127.0.0.1"
    file.write_text("\n".join([*lines, f"SOLISYNC_DATA_DIR={NO_DATA_DIR}"]))
    service = launch(*command, f"--env-file={file}", port=port)
    await served(reactor, service)
    if command is TWISTD:
        return
    for words in (["--env-file", file, "status"], ["status", "--env-file", file], ["--env-file", file, "--migrate"]):
        done = run(*SOLISYNC, *words)
        assert (done.status, done.err) == (0, [])
    reset = run(BIN / "solisync-reset-password", "--env-file", file, "nobody_at_all", stdin=b"long enough\n")
    assert reset.err == ["user 'nobody_at_all' not found"]
    assert f"is running on tcp:{port}" in "".join(run(*SOLISYNC, "--env-file", file, "doctor").out)
    service.stop()


FINE = ("SOLISYNC_TRUSTED_PROXIES", "SOLISYNC_CORS_ORIGINS")


# Where it can't listen.


def certificate(place):
    (place / "bad.pem").write_text("no certificate\n")
    return place / "bad.pem"


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        pytest.param("tcp:99999", "65535", marks=LONG),
        pytest.param("tcp:http", "'http' is not a number", marks=LONG),
        pytest.param("tcp:0:iface=127.0.0.1", "there is no parameter 'iface'", marks=LONG),
        pytest.param("tcp:0:interface=999.1.1.1", "999.1.1.1", marks=LONG),
        ("unix:{place}/none/socket", "No such file"),
        ("ssl:0:privateKey={place}/bad.pem", "bad.pem"),
    ],
)
def test_invalid_endpoint_is_named_in_one_line(place, endpoint, says):
    """The start leaves nothing behind."""
    certificate(place)
    endpoint = endpoint.format(place=place)
    refused = run(*SOLISYNC, "--listen", endpoint, JWT_SECRET=SECRET, SOLISYNC_DATA_DIR=place / "data")
    assert (refused.status, refused.out) == (1, [])
    (line,) = (line for line in refused.err if line.startswith("solisync: "))
    assert says in line
    assert "Traceback" not in " ".join(refused.err)


@pytest.mark.parametrize("command", [SOLISYNC, pytest.param(TWISTD, marks=LONG)], ids=["solisync", "twistd -n"])
def test_port_in_use_is_one_line(place, shared_dsn, command):
    """Every entry point exits with a status other than 0."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
        refused = run(*command, cwd=place, JWT_SECRET=SECRET, SOLISYNC_LISTEN=endpoint, DATABASE_URL=shared_dsn)
    assert refused.status == 1
    (line,) = (line for line in refused.out + refused.err if "ddress already in use" in line)
    assert endpoint in line
    assert "Traceback" not in " ".join(refused.out + refused.err)


def test_daemon_on_a_port_in_use_fails_in_the_shell(place, daemonize, shared_dsn):
    """The start leaves neither a process nor a pidfile."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
        refused = daemonize("solisync", JWT_SECRET=SECRET, SOLISYNC_LISTEN=endpoint, DATABASE_URL=shared_dsn)
    assert refused.status == 1
    assert "can't listen" in " ".join(refused.err)
    wait_for(lambda: not processes_in(place))
    log = (place / "twistd.log").read_text("utf-8")
    assert log.count("Address already in use") == 1
    assert "Traceback" not in log
    assert not (place / "twistd.pid").exists()


async def test_service_replaces_the_unix_socket_of_a_killed_one(reactor, launch, shared_dsn, place):
    path = place / "solisync.sock"
    for _ in range(2):
        service = start(launch, *SOLISYNC, dsn=shared_dsn, endpoint=f"unix:{path}")
        wait_for(lambda: is_served(path))
        kill(service.pid)
        service.popen.wait()
        # as in a container, where the next process gets the same number
        (place / "solisync.sock.lock").unlink()
        (place / "solisync.sock.lock").symlink_to(str(os.getpid()))


def is_served(path):
    """Return whether a service answers on a unix socket."""
    with suppress(OSError), closing(Connection(unix=path)) as connection:
        return connection.ask("GET", "/health").status == 200


def test_unix_socket_in_use_is_refused(place, shared_dsn):
    """The service that listens there keeps it."""
    path = place / "solisync.sock"
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(str(path))
        taken.listen()
        refused = run(*SOLISYNC, f"--listen=unix:{path}", JWT_SECRET=SECRET, DATABASE_URL=shared_dsn)
        assert refused.status == 1
        assert "in use" in refused.err[-1]
        assert path.exists()


# Commands beside the service.


async def test_migrate_works_repeatedly_and_beside_a_service(reactor, launch, empty_database, place):
    """`solisync --migrate` brings the schema up to date once, without disturbing a running service."""
    first = run(*SOLISYNC, "--migrate", DATABASE_URL=empty_database)
    assert (first.status, first.err) == (0, [])
    assert first.out[0] == "applied baseline.sql"
    service = start(launch, *SOLISYNC, dsn=empty_database)
    await ready(reactor, service.client())
    again = run(*SOLISYNC, "--migrate", DATABASE_URL=empty_database)
    assert (again.status, again.out, again.err) == (0, ["the schema is up to date"], [])
    await service.client().ready()
    service.stop()


@LONG
async def test_migrate_works_on_the_embedded_database(reactor, launch, place):
    """`solisync --migrate` uses the server of the running service, or starts one while it runs."""
    done = run(*SOLISYNC, "--migrate", SOLISYNC_DATA_DIR=place)
    assert (done.status, done.err, done.out[0]) == (0, [], "applied baseline.sql")
    assert not processes_in(place)
    service = start(launch, *SOLISYNC, data_dir=place)
    wait_for(lambda: "listens on" in service.log)  # from here on it holds the lock
    beside = run(*SOLISYNC, "--migrate", SOLISYNC_DATA_DIR=place)  # while the service is still starting
    assert (beside.status, beside.err, beside.out) == (0, [], ["the schema is up to date"])
    await ready(reactor, service.client())
    assert postmaster(place) in processes_in(place)
    service.stop()


@pytest.mark.parametrize(
    "url",
    [
        "{dsn} dbname=none",
        pytest.param("postgresql://nobody@127.0.0.1:{port}/none", marks=LONG),
        pytest.param("host=/nonexistent", marks=LONG),
    ],
)
def test_unreachable_database_is_one_line(postgres, url):
    refused = run(*SOLISYNC, "--migrate", DATABASE_URL=url.format(port=free_port(), dsn=postgres.dsn))
    assert (refused.status, refused.out) == (1, [])
    assert len(refused.err) == 1
    assert "can't reach the database" in refused.err[0]


@pytest.mark.parametrize("pages", ["on", pytest.param("off", marks=LONG)])
async def test_smoke_check_plays_a_session_and_leaves_no_account(serve, shared_dsn, pages):
    """`solisync --smoke URL` prints each step. It works without pages, too."""
    truncate(shared_dsn)
    service = await serve(shared_dsn, SOLISYNC_PAGES=pages)
    check = run(*SOLISYNC, "--smoke", service.url)
    assert (check.status, check.err) == (0, [])
    assert {"ok   health", "ok   register", "ok   login of a page", "all steps passed"} <= set(check.out)
    assert ("     this service has no pages" in check.out) == (pages == "off")
    assert service.sql("SELECT count(*) FROM users") == [(0,)]
    assert service.stop() == 0


async def test_smoke_check_asks_every_route(server, reactor, monkeypatch):
    """Routes in NOT_PLAYED are left out, for the reason that is given there."""
    asked = set()
    metrics = server.service.parts.metrics
    monkeypatch.setattr(metrics, "answered", lambda method, route, *_: asked.add(f"{method} {route}"))
    await smoke(server.url, reactor)
    await until(reactor, lambda: "GET /api/events" in asked)
    assert {f"{route.method} {route.path}" for route in table() if route.listed} - asked == NOT_PLAYED


async def test_interrupted_smoke_check_deletes_its_account(serve, launch, shared_dsn):
    """A signal ends it while it waits for the rate limit. The exit status is 1."""
    truncate(shared_dsn)
    service = await serve(shared_dsn, SOLISYNC_AUTH_LIMIT="5/60")
    check = launch(*SOLISYNC, "--smoke", service.url, PYTHONUNBUFFERED="1")
    wait_for(lambda: "because of the rate limit" in check.log)
    assert check.stop() == 1
    assert check.log.endswith("ok   clean up: delete account\ninterrupted\n")
    assert service.sql("SELECT count(*) FROM users") == [(0,)]
    assert service.stop() == 0


async def test_smoke_check_of_a_closed_port_fails(reactor):
    with pytest.raises(FatalError, match=r"^smoke check failed: [^\n]+$"):
        await smoke(f"http://127.0.0.1:{free_port()}", reactor)


@pytest.mark.parametrize(("scheme", "message"), [("http", "400 not an answer"), ("https", "TLS: wrong version number")])
async def test_smoke_check_of_another_server_names_the_problem(reactor, scheme, message):
    """One line names a server that isn't solisync, or that doesn't speak TLS."""

    class Other(Protocol):
        def dataReceived(self, data):
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 13\r\n\r\n<html>\r\n<body")
            self.transport.loseConnection()

    port = reactor.listenTCP(0, Factory.forProtocol(Other), interface="127.0.0.1")
    try:
        with pytest.raises(FatalError, match=f"^smoke check failed: {message}") as caught:
            await smoke(f"{scheme}://127.0.0.1:{port.getHost().port}", reactor)
        assert "\n" not in str(caught.value)
        assert "Failure" not in str(caught.value)
    finally:
        await port.stopListening()


async def test_failed_smoke_check_leaves_no_account(server, reactor, monkeypatch, capsys):
    """A step fails midway."""

    async def broken(client, username, password):
        raise ApiError(500, "internal server error")

    monkeypatch.setattr(Client, "login", broken)
    with pytest.raises(FatalError, match="smoke check failed: 500 internal server error"):
        await smoke(server.url, reactor)
    assert "fail login" in capsys.readouterr().out
    assert server.sql("SELECT count(*) FROM users") == [(0,)]


@pytest.fixture
def wide_limit_service(reactor, shared_dsn):
    """A service in this process with a rate limit that lets a smoke check and other logins pass within a minute."""
    truncate(shared_dsn)
    starting = start_service(reactor, shared_dsn, settings={"SOLISYNC_AUTH_LIMIT": "100/60"})
    running = pytest_twisted.blockon(Deferred.fromCoroutine(starting))
    yield running
    pytest_twisted.blockon(running.service.stopService())


async def test_two_smoke_checks_a_minute_fit_a_wider_rate_limit(wide_limit_service, reactor, capsys):
    """`make run` sets that limit."""
    for _ in range(2):
        assert await smoke(wide_limit_service.url, reactor) == "all steps passed"
    assert "wait" not in capsys.readouterr().out


async def test_other_players_do_not_disturb_the_smoke_check(wide_limit_service, reactor, monkeypatch, capsys):
    """A player enters the leaderboard during the check, so that each stream gets an event."""
    other = wide_limit_service.client()
    await other.register("other_player", "correct horse")
    own_push = Client.push

    async def push_after_another(client, progress):
        await other.opt_in("Other")
        return await own_push(client, progress)

    monkeypatch.setattr(Client, "push", push_after_another)
    assert await smoke(wide_limit_service.url, reactor) == "all steps passed"
    assert "ok   event of the push" in capsys.readouterr().out


async def test_smoke_check_waits_for_lists_of_several_processes(wide_limit_service, reactor, monkeypatch, capsys):
    """A list of another process may be a second old."""
    monkeypatch.setattr(CoalescingCache, "invalidate", lambda cache: None)
    assert await smoke(wide_limit_service.url, reactor) == "all steps passed"
    assert "ok   recent replays without it" in capsys.readouterr().out


@LONG
async def test_wrong_list_fails_the_smoke_check(wide_limit_service, reactor, monkeypatch, capsys):
    """A replay is still listed seconds after it was unlisted. The check deletes its account."""
    monkeypatch.setattr(CoalescingCache, "invalidate", lambda cache: None)
    monkeypatch.setattr(CoalescingCache, "seconds", 3600.0)
    with pytest.raises(FatalError, match="without it: the replay is still in the list"):
        await smoke(wide_limit_service.url, reactor)
    assert wide_limit_service.sql("SELECT count(*) FROM users") == [(0,)]


async def test_misspelt_variable_is_warned_of(launch, reactor, shared_dsn):
    """The service starts, and its log names the right variable."""
    service = start(launch, *SOLISYNC, dsn=shared_dsn, SOLISYNC_TRUSTED_PROXY="127.0.0.1")
    await ready(reactor, service.client())
    assert "SOLISYNC_TRUSTED_PROXY is not a setting: did you mean SOLISYNC_TRUSTED_PROXIES?" in service.log


@pytest.mark.parametrize("entry", ["main", "reset_password"])
def test_interrupt_during_the_imports_prints_no_traceback(entry):
    """The imports take a quarter of a second."""
    program = f"from solisync.commands.start import {entry}; {entry}()"
    words = [sys.executable, "-X", "importtime", "-c", program]
    process = subprocess.Popen(words, env=clean_environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not (line := process.stderr.readline()).endswith(b" solisync.errors\n"):
        assert line
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=PATIENCE)
    assert b"Traceback" not in error
    assert process.returncode == -signal.SIGINT
