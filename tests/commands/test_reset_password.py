"""The reset of a password by its script and its subcommand, beside a running service and without one."""

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from twisted.internet.threads import deferToThread

from solisync.client import ApiError
from solisync.commands import reset_password
from solisync.commands.main import main as solisync_main
from solisync.postgres.migrate import load_migrations, migrate
from tests.harness.concurrency import wait_for
from tests.harness.constants import BIN, PASSWORD, PATIENCE
from tests.harness.entry_points import SOLISYNC, anew, start
from tests.harness.postgres import run_sql
from tests.harness.processes import processes_in, run, terminal
from tests.harness.service import ready

SCRIPT = (BIN / "solisync-reset-password",)
OPTION = (*SOLISYNC, "--reset-password")
NEW = "canary new password"

each_door = pytest.mark.parametrize("door", [SCRIPT, OPTION], ids=["script", "option"])


def reset(door, server, name="ann", password=f"{NEW}\n".encode(), **variables):  # noqa: B008
    return run(*door, name, stdin=password, **{"DATABASE_URL": server.dsn} | variables)


async def may_log_in(server, password, name="ann"):
    try:
        await server.client().login(name, password)
    except ApiError as error:
        if error.status != 401:
            raise
        return False
    return True


@each_door
async def test_reset_replaces_the_password_and_ends_all_sessions(server, door):
    """The command prints one line and exits with 0. Other players keep their sessions."""
    ann, bob = await server.player("ann"), await server.player("bob")
    done = reset(door, server)
    assert (done.status, done.err) == (0, [])
    assert done.out == ["replaced the password of 'ann' and ended all sessions"]
    assert not await may_log_in(server, PASSWORD)
    assert await may_log_in(server, NEW)
    with pytest.raises(ApiError, match="401 unauthorized"):
        await ann.refresh()
    await bob.refresh()


@pytest.mark.parametrize(
    ("name", "password", "says"),
    [
        ("nobody_here", NEW.encode(), "user 'nobody_here' not found"),
        pytest.param("", NEW.encode(), "user '' not found", marks=pytest.mark.long),
        pytest.param("ann", b"1234567\n", "password must be at least 8 characters", marks=pytest.mark.long),
        ("ann", f"{NEW}\nanother\n".encode(), "solisync: standard input has several lines: give it the password alone"),
        pytest.param("ann", b"x" * 1025, "password must be at most 1024 bytes", marks=pytest.mark.long),
        ("ann", b"x" * 30_000_000, "password must be at most 1024 bytes"),
        ("ann", b"\xff" * 8 + b"\n", "the password is not UTF-8"),
    ],
)
async def test_refused_reset_changes_nothing(server, name, password, says):
    """The command prints one line on standard error and exits with 1."""
    ann = await server.player("ann")
    refused = reset(SCRIPT if name == "ann" else OPTION, server, name, password)
    assert (refused.status, refused.out, refused.err) == (1, [], [says])
    assert await may_log_in(server, PASSWORD)
    await ann.refresh()


def test_usage_errors_exit_with_2():
    """A reset needs exactly one name."""
    for main, words in (
        (reset_password.main, []),
        (reset_password.main, ["a", "b"]),
        (reset_password.main, ["--bogus"]),
        (solisync_main, ["--reset-password"]),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(words)


@pytest.mark.parametrize(
    "given", [b"\xef\xbb\xbf  spaced out\t \r\n", pytest.param(b"  spaced out\t ", marks=pytest.mark.long)], ids=repr
)
async def test_reset_strips_only_the_line_end_and_a_byte_order_mark(server, given):
    """White space is part of the password."""
    await server.player("ann")
    assert reset(SCRIPT, server, password=given).status == 0
    assert await may_log_in(server, "  spaced out\t ")


@pytest.mark.parametrize("length", [pytest.param(8, marks=pytest.mark.long), 1024])
async def test_passwords_of_8_to_1024_bytes_work(server, length):
    """Every byte counts, even beyond the 72 of bcrypt."""
    await server.player("ann")
    assert reset(SCRIPT, server, password=b"x" * length).status == 0
    assert await may_log_in(server, "x" * length)
    assert not await may_log_in(server, "x" * (length - 1) + "y")


async def test_reset_waits_for_no_more_than_a_line(server, launch):
    """A pipe that stays open delays nothing."""
    await server.player("ann")
    reading, writing = os.pipe()
    with open(reading, "rb") as theirs, open(writing, "wb", buffering=0) as ours:
        command = launch(*SCRIPT, "ann", stdin=theirs, DATABASE_URL=server.dsn)
        ours.write(f"{NEW}\n".encode())
        assert await deferToThread(command.popen.wait, PATIENCE) == 0
    assert await may_log_in(server, NEW)


async def test_username_is_trimmed_as_at_login(server):
    await server.player("ann")
    assert reset(SCRIPT, server, " ann ").status == 0
    assert await may_log_in(server, NEW)


async def test_reset_needs_no_signing_secret(server):
    """A missing or broken JWT_SECRET, or a wrong endpoint, doesn't matter."""
    await server.player("ann")
    broken = {"JWT_SECRET": "short", "JWT_SECRET_FILE": "/none", "SOLISYNC_LISTEN": "bogus:"}
    assert reset(SCRIPT, server, **broken).status == 0
    assert reset(OPTION, server, **broken).status == 0


def test_wrong_settings_are_named(server):
    """The command checks the settings that it needs."""
    refused = reset(SCRIPT, server, DATABASE_URL="nonsense", SOLISYNC_DATABASE_CONNECTIONS="0")
    assert (refused.status, refused.out, len(refused.err)) == (1, [], 2)


async def test_reset_works_on_the_embedded_database(reactor, launch, initialized, place):
    """The command uses the server of a running service, or starts one while it runs."""
    initialized(place)
    service = start(launch, *SOLISYNC, data_dir=place)
    await ready(reactor, service.client())
    ann = await service.player("ann")
    assert run(*SCRIPT, "ann", stdin=b"while it runs", SOLISYNC_DATA_DIR=place).status == 0
    assert await may_log_in(service, "while it runs")
    with pytest.raises(ApiError, match="401 unauthorized"):
        await ann.refresh()
    service.stop()
    done = run(*OPTION, "ann", stdin=b"while it rests", SOLISYNC_DATA_DIR=place)
    assert (done.status, done.err, len(done.out)) == (0, [], 1)
    assert not processes_in(place)
    service = start(launch, *SOLISYNC, data_dir=place)
    await ready(reactor, service.client())
    assert await may_log_in(service, "while it rests")
    service.stop()


async def test_no_process_shows_the_password(initialized, place):
    """The arguments and environment of the command and its children don't contain it."""
    initialized(place)
    shown, over = [], threading.Event()

    def look():
        while not over.wait(0.01):
            for file in [file for kind in ("cmdline", "environ") for file in Path("/proc").glob(f"[0-9]*/{kind}")]:
                try:
                    if b"canary-" in (content := file.read_bytes()) and NEW_HERE in content:
                        shown.append(content)
                except OSError:
                    continue

    watching = threading.Thread(target=look)
    watching.start()
    try:
        done = run(*anew(SCRIPT), "ann", stdin=NEW_HERE, SOLISYNC_DATA_DIR=place)
    finally:
        over.set()
        watching.join()
    assert done.err == ["user 'ann' not found"]
    assert not shown
    logged = b"".join(file.read_bytes() for file in place.glob("*.log")) + done.stdout + done.stderr
    assert NEW_HERE not in logged


NEW_HERE = b"canary-4711 nobody else has this"


@pytest.mark.parametrize(
    ("second", "status", "says"),
    [(NEW, 0, "replaced the password of 'ann'"), (NEW + "!", 1, "the passwords differ")],
    ids=["same", "different"],
)
async def test_password_is_typed_twice_without_echo_on_a_terminal(server, launch, second, status, says):
    """Two different passwords are refused."""
    await server.player("ann")
    with terminal() as (ours, theirs):
        command = launch(*SCRIPT, "ann", stdin=theirs, DATABASE_URL=server.dsn)
        theirs.close()
        for prompt, answer in (("New password: ", NEW), ("Repeat new password: ", second)):
            await deferToThread(wait_for, lambda prompt=prompt: prompt in command.log)
            ours.write(answer.encode() + b"\n")
        assert await deferToThread(command.popen.wait, PATIENCE) == status
        with suppress(OSError):  # how a terminal ends on Linux
            assert NEW.encode() not in ours.read(1000)
    assert says in command.log
    assert NEW not in command.log
    assert await may_log_in(server, NEW if status == 0 else PASSWORD)


def test_end_of_input_on_a_terminal_changes_nothing(server, launch):
    """The command prints one line, without a traceback."""
    with terminal() as (ours, theirs):
        command = launch(*SCRIPT, "ann", stdin=theirs, DATABASE_URL=server.dsn)
        wait_for(lambda: "New password: " in command.log)
        ours.write(b"\x04")
        assert command.popen.wait(PATIENCE) == 1
    assert command.log.split("\n") == ["New password: nothing was changed", ""]


def test_reset_creates_no_database(place):
    """Without a database the command prints one line and leaves no file."""
    for directory in (place / "missing", place):
        outcome = run(*SCRIPT, "ann", "--data-dir", directory, stdin=b"new password\n")
        assert outcome.status == 1
        assert outcome.err == [
            f"solisync: there is no database in {directory}: name the directory that the service uses"
            " with --data-dir or SOLISYNC_DATA_DIR"
        ]
    assert not (place / "missing").exists()
    assert not (place / "postgresql").exists()


@pytest.mark.parametrize("applied", [0, *(each.number for each in load_migrations()[-2:-1])])
async def test_reset_leaves_an_older_schema_unchanged(reactor, empty_database, applied):
    """Nodes of the version before may run on it. The command prints one line with the remedy."""
    if applied:
        await migrate(reactor, empty_database, [each for each in load_migrations() if each.number <= applied])
    tables = "SELECT oid, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY oid"
    before = run_sql(empty_database, tables)
    refused = run(*SCRIPT, "ann", stdin=NEW.encode(), DATABASE_URL=empty_database)
    latest = load_migrations()[-1].number
    says = f"solisync: the database schema is at {applied}, but this version needs {latest}: run solisync --migrate"
    assert (refused.status, refused.out, refused.err) == (1, [], [says])
    assert run_sql(empty_database, tables) == before
    if applied:
        assert run_sql(empty_database, "SELECT max(number) FROM schema_migrations") == [(applied,)]


def test_reset_is_in_the_audit_trail(server):
    """With JSON logs, standard error has a line with the username; standard output doesn't change."""
    (user_id,) = server.sql(
        "INSERT INTO users (id, username, password_hash, created_at)"
        " VALUES (gen_random_uuid(), 'ann', 'none', now()) RETURNING id::text"
    )[0]
    done = reset(SCRIPT, server, SOLISYNC_LOG_FORMAT="json")
    assert done.status == 0
    assert done.out == ["replaced the password of 'ann' and ended all sessions"]
    (line,) = map(json.loads, done.err)
    assert (line["event"], line["user_id"]) == ("password reset", user_id)
    assert NEW not in done.err[0]
