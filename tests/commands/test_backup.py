"""`solisync backup` and `solisync restore`: complete or not at all, and without sessions."""

import os
import shlex
import signal
import stat
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from solisync.commands.backup import backup as backups
from solisync.commands.backup import programs
from solisync.commands.backup.programs import find_closest, find_newest
from solisync.commands.smoke import PIXEL
from solisync.diagnosis import introspection
from solisync.embedded.programs import find_binaries
from solisync.errors import FatalError
from solisync.postgres.connection import Connection
from solisync.postgres.migrate import load_migrations, migrate
from solisync.postgres.opening import open_connection
from solisync.settings.settings import Settings
from tests.harness.concurrency import wait_for
from tests.harness.constants import DSN_PASSWORD, PASSWORD
from tests.harness.entry_points import SOLISYNC
from tests.harness.footprint import restrict
from tests.harness.payloads import replay
from tests.harness.postgres import CONTENT, connect, content, lock_waiters, run_sql
from tests.harness.processes import processes_in, run

LEFT_OUT = """
    SELECT (SELECT count(*) FROM refresh_tokens), (SELECT count(*) FROM recovery_codes),
        (SELECT count(*) FROM reset_tokens), (SELECT count(*) FROM admin_codes), (SELECT count(*) FROM admin_sessions)
"""
ADMIN = """
    INSERT INTO admins (name) VALUES ('root');
    INSERT INTO admin_codes (admin, digest, expires_at) VALUES ('root', 'x', now() + interval '1 h');
    INSERT INTO admin_sessions (admin, digest, begun_at, used_at, client) VALUES ('root', 'x', now(), now(), 'unix')
"""


def relations(dsn):
    return run_sql(dsn, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace")[0][0]


@pytest.fixture
def filled(server):
    """The shared service with a row in every table and two players, one of them suspended."""

    async def fill():
        for name in ("ann", "bob"):
            player = await server.player(name)
            await player.upload_avatar(PIXEL, "image/png")
            await player.upload_replay(replay())
            await player.push((await player.pull()).merged)
            await player.opt_in(name)
            await player.make_recovery_codes(PASSWORD)
        restrict(server.dsn, (await player.me()).id)
        server.sql("INSERT INTO reset_tokens SELECT id, 'x', now() + interval '1 h' FROM users WHERE username = 'ann'")
        server.sql(ADMIN)

    pytest_twisted.blockon(Deferred.fromCoroutine(fill()))
    return server


async def test_restore_brings_back_everything_but_sessions(administrate, filled, empty_database, place):
    """A backup has no sessions, recovery codes or reset links; the service still accepts its password hashes."""
    file = place / "a backup.dump"
    done = await administrate("backup", file, "--json")
    assert done.json == {"file": str(file), "bytes": file.stat().st_size}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in place.iterdir()] == [file.name]
    assert (await administrate("restore", file, "--json", DATABASE_URL=empty_database)).json["players"] == 2
    assert content(empty_database) == content(filled.dsn)
    assert run_sql(empty_database, LEFT_OUT) == [(0,) * 5]
    run_sql(empty_database, "INSERT INTO analytics_names (name, seen_on) VALUES ('ann', now())")


async def test_restore_of_a_plain_dump_drops_its_sessions(administrate, filled, empty_database, place, postgres):
    """The transaction that restores a file of pg_dump also deletes what backups leave out."""
    file = place / "dump"
    program = find_binaries(place, None) / "pg_dump"
    subprocess.run([program, "--format=custom", f"--file={file}", f"--dbname={filled.dsn}"], check=True)
    assert min(*filled.sql(LEFT_OUT)[0]) > 0
    await administrate("restore", file, DATABASE_URL=empty_database)
    assert content(empty_database) == content(filled.dsn)
    assert run_sql(empty_database, LEFT_OUT) == [(0,) * 5]


async def test_move_with_sessions_keeps_all_logged_in(administrate, serve, migrated_database, empty_database, place):
    """Tokens, recovery codes and the counting of games continue on the new database. The service must be stopped."""
    file = place / "dump"
    old = await serve(migrated_database)
    player = await old.player("ann")
    await player.push((await player.pull()).merged)
    code = (await player.make_recovery_codes(PASSWORD)).codes[0]
    words = ("backup", file, "--with-sessions")
    with pytest.raises(FatalError, match="--with-sessions is for a stopped service"):
        await administrate(*words, DATABASE_URL=migrated_database)
    assert [*place.iterdir()] == []
    assert old.stop() == 0
    await administrate(*words, DATABASE_URL=migrated_database)
    done = await administrate("restore", file, "--with-sessions", DATABASE_URL=empty_database)
    assert "all players stay logged in" in done
    assert run_sql(empty_database, "TABLE known_states") == run_sql(migrated_database, "TABLE known_states") != []
    new = await serve(empty_database)
    refreshed = await new.ask("POST", "/api/auth/refresh", body={"refresh_token": player.tokens.refresh_token})
    assert refreshed.status == 200
    await new.client().recover("ann", code, PASSWORD)


async def test_restore_with_sessions_needs_a_backup_with_sessions(administrate, filled, empty_database, place):
    await administrate("backup", place / "dump")
    with pytest.raises(FatalError, match="has no sessions: it was made without --with-sessions"):
        await administrate("restore", place / "dump", "--with-sessions", DATABASE_URL=empty_database)


async def test_existing_file_is_replaced_only_with_force(administrate, filled, place):
    file = place / "dump"
    file.write_text("precious")
    with pytest.raises(FatalError, match="already exists: choose another name, or use --force"):
        await administrate("backup", file)
    assert file.read_text() == "precious"
    await administrate("backup", file, "--force")
    assert file.read_bytes().startswith(b"PGDMP")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(FatalError, match="it is not a regular file"):
        await administrate("backup", place, "--force")


async def test_failed_backup_leaves_no_file(administrate, filled, place, empty_database):
    """The database lacks a schema, or the directory is missing."""
    with pytest.raises(FatalError, match="this is not a solisync database"):
        await administrate("backup", place / "dump", DATABASE_URL=empty_database)
    with pytest.raises(FatalError, match=f"there is no directory {place / 'missing'}$"):
        await administrate("backup", place / "missing" / "dump")
    assert [*place.iterdir()] == []


async def test_keep_deletes_old_backups_only(administrate, filled, empty_database, place):
    """--keep counts only files that the command made. Links, directories, other names and the newest backups stay."""
    first = Path((await administrate("backup", "--into", place, "--json")).json["file"])
    rest = first.name.rpartition("-")[2]
    first.unlink()
    others = ["notes.txt", "solisync.dump", f"solisync-20200101T000000.000000Z-{rest}.gz", f"solisync-2020-{rest}"]
    for name in others:
        (place / name).write_text("precious")
    (place / f"solisync-20200101T000000.000001Z-{rest}").mkdir()
    (place / f"solisync-20200101T000000.000002Z-{rest}").symlink_to(place / "notes.txt")
    before = {each.name for each in place.iterdir()}
    made = []
    for _ in range(4):
        done = (await administrate("backup", "--into", place, "--keep", "2", "--json")).json
        made.append(Path(done["file"]).name)
        assert stat.S_IMODE((place / made[-1]).stat().st_mode) == 0o600
        assert done["deleted"] == made[-3:-2]
    assert made == sorted(made)
    assert {each.name for each in place.iterdir()} == before | {*made[-2:]}
    await administrate("restore", place / made[-1], DATABASE_URL=empty_database)
    assert content(empty_database) == content(filled.dsn)
    await administrate("backup", "--into", place)
    assert len([*place.iterdir()]) == len(before) + 3


async def test_keep_counts_the_backups_of_one_database(administrate, filled, migrated_database, place, reactor):
    """A directory may hold backups of several databases. Counting needs no rights of the role."""
    made = {}
    for dsn in (filled.dsn, migrated_database, filled.dsn, migrated_database):
        done = await administrate("backup", "--into", place, "--keep", "1", "--json", DATABASE_URL=dsn)
        made[dsn] = Path(done.json["file"])
    assert {*place.iterdir()} == {*made.values()}
    run_sql(migrated_database, "DROP ROLE IF EXISTS without_rights; CREATE ROLE without_rights")
    run_sql(migrated_database, f"SET ROLE without_rights; {introspection._IDENTITY}")
    run_sql(migrated_database, "DROP ROLE without_rights")


async def test_backup_that_fails_midway_keeps_older_backups(administrate, filled, place):
    """On a full disk the command fails and leaves no file; the backup before it stays."""
    await administrate("backup", "--into", place, "--keep", "1")
    before = [*place.iterdir()]
    words = " ".join(map(shlex.quote, [str(SOLISYNC[0]), "backup", "--into", str(place), "--keep", "1"]))
    done = run("sh", "-c", f"ulimit -f 16; exec {words}", DATABASE_URL=filled.dsn)
    assert (done.status, len(done.err)) == (1, 1)
    assert "pg_dump failed" in done.err[0]
    assert [*place.iterdir()] == before


async def test_unfinished_file_of_a_killed_backup_is_deleted_after_a_day(administrate, launch, filled, place):
    """--keep doesn't count unfinished files. The unfinished file of a running backup stays."""
    first = Path((await administrate("backup", "--into", place, "--json")).json["file"])
    with closing(connect(filled.dsn)) as blocking, blocking.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        backup = launch(*SOLISYNC, "backup", "--into", place, "--keep", "1", DATABASE_URL=filled.dsn)
        pid = wait_for(lambda: started(filled.dsn, "pg_dump"))
        backup.stop(signal.SIGKILL)
        cursor.execute("SELECT pg_terminate_backend(%s)", (pid,))
        wait_for(lambda: not started(filled.dsn, "pg_dump"))
    (unfinished,) = {*place.iterdir()} - {first}
    assert unfinished.name.startswith(".")
    second = Path((await administrate("backup", "--into", place, "--keep", "2", "--json")).json["file"])
    assert {*place.iterdir()} == {first, second, unfinished}
    yesterday = time.time() - backups.ABANDONED_SECONDS - 1
    os.utime(unfinished, (yesterday, yesterday))
    await administrate("backup", "--into", place, "--keep", "3")
    assert not unfinished.exists()
    assert len([*place.iterdir()]) == 3


async def test_two_simultaneous_backups_are_both_complete(administrate, filled, place):
    """Each has its own name, and neither deletes the file of the other."""
    runs = [Deferred.fromCoroutine(administrate("backup", "--into", place, "--keep", "2", "--json")) for _ in range(2)]
    made = {Path((await each).json["file"]) for each in runs}
    assert {*place.iterdir()} == made
    assert all(file.read_bytes().startswith(b"PGDMP") for file in made)


@pytest.mark.parametrize(
    ("words", "says"),
    [(["--into", ".", "--force"], "--force can't be combined"), (["dump", "--keep", "3"], "--keep needs --into")],
)
async def test_options_without_effect_are_refused(administrate, words, says):
    """--keep needs a directory, --force a file."""
    with pytest.raises(FatalError, match=says):
        await administrate("backup", *words)


async def test_restore_needs_an_empty_database(administrate, filled, migrated_database, place):
    """Restoring refuses even a database that has a schema and no players."""
    await administrate("backup", place / "dump")
    before = relations(migrated_database)
    with pytest.raises(FatalError, match="this database is not empty"):
        await administrate("restore", place / "dump", DATABASE_URL=migrated_database)
    assert relations(migrated_database) == before
    assert run_sql(migrated_database, "SELECT count(*) FROM users") == [(0,)]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("text", "is not a solisync backup"),
        ("foreign", "is not a solisync backup"),
        ("cut", "pg_restore failed"),
        ("newer", "comes from a newer PostgreSQL than any pg_restore here"),
    ],
)
async def test_invalid_backup_is_refused_and_changes_nothing(administrate, filled, empty_database, place, damage, says):
    """Text, a foreign dump, a truncated backup and one of a later format are each refused in one line."""
    file = place / "dump"
    if damage == "foreign":
        program = find_binaries(place, None) / "pg_dump"
        subprocess.run([program, "--format=custom", f"--file={file}", f"--dbname={empty_database}"], check=True)
    else:
        await administrate("backup", file)
        whole = file.read_bytes()
        newer = whole[:6] + b"\x63" + whole[7:]  # the minor number of the format, after PGDMP and the major one
        file.write_bytes({"text": b"-- SQL\n", "cut": whole[: len(whole) * 3 // 4], "newer": newer}[damage])
    with pytest.raises(FatalError, match=says) as caught:
        await administrate("restore", file, DATABASE_URL=empty_database)
    assert "\n" not in str(caught.value)
    assert relations(empty_database) == 0


async def test_restore_upgrades_an_older_schema(administrate, empty_database, place, reactor, postgres):
    """A restored backup of an older version has the schema of this version."""
    latest = load_migrations()[-1]
    await migrate(reactor, empty_database, load_migrations()[:1])  # that of 1.0.0
    await administrate("backup", place / "dump", DATABASE_URL=empty_database)
    run_sql(empty_database, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await administrate("restore", place / "dump", DATABASE_URL=empty_database)
    assert run_sql(empty_database, "SELECT max(number) FROM schema_migrations") == [(latest.number,)]


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
async def test_interrupted_backup_leaves_neither_file_nor_process(launch, filled, place, how):
    """No process shows the password while the backup runs."""
    with closing(connect(filled.dsn)) as blocking, blocking.cursor() as cursor:
        cursor.execute("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        dsn = f"{filled.dsn} password={DSN_PASSWORD}"
        backup = launch(*SOLISYNC, "backup", place / "dump", DATABASE_URL=dsn)
        dumping = wait_for(lambda: started(filled.dsn, "pg_dump"))
        for words in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                assert DSN_PASSWORD.encode() not in words.read_bytes()
            except OSError:
                continue
        assert backup.stop(how) == 1
        assert backup.log == "interrupted\n"
        wait_for(lambda: not started(filled.dsn, "pg_dump"))
    assert dumping
    assert [*place.iterdir()] == []


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
async def test_interrupted_restore_leaves_the_database_empty(administrate, launch, filled, empty_database, place, how):
    """The transaction ends with psql."""
    await administrate("backup", place / "dump")
    with closing(connect(empty_database)) as blocking, blocking.cursor() as cursor:
        cursor.execute("BEGIN; CREATE TABLE users ()")  # invisible to others, and a creation of the same name must wait
        restore = launch(*SOLISYNC, "restore", place / "dump", DATABASE_URL=empty_database)
        pid = wait_for(lambda: started(empty_database, "psql"))
        restore.stop(how)
        if how is signal.SIGKILL:  # then psql continues without its parent, until its connection ends
            cursor.execute("SELECT pg_terminate_backend(%s)", (pid,))
        wait_for(lambda: not started(empty_database, "psql"))
        cursor.execute("ROLLBACK")
    assert relations(empty_database) == 0


def started(dsn, program):
    """Return the backend of a program that waits for a lock."""
    return next((waiter.pid for waiter in lock_waiters(dsn) if waiter.application == program), None)


async def test_service_waits_for_a_restore_to_end(administrate, filled, empty_database, place, reactor):
    """Restoring holds the lock of migrations, so that no service creates tables during the restore."""
    await administrate("backup", place / "dump")
    with closing(connect(empty_database)) as blocking, blocking.cursor() as cursor:
        cursor.execute("BEGIN; CREATE TABLE users ()")
        restoring = Deferred.fromCoroutine(administrate("restore", place / "dump", DATABASE_URL=empty_database))
        while not started(empty_database, "psql"):
            await deferLater(reactor, 0.01)
        migrating = Deferred.fromCoroutine(migrate(reactor, empty_database, load_migrations()))
        await deferLater(reactor, 0.3)  # more than one look at the lock
        assert not migrating.called
        cursor.execute("ROLLBACK")
    await restoring
    assert await migrating == []
    assert content(empty_database) == content(filled.dsn)


async def test_progress_option_names_the_tables(administrate, filled, empty_database, place):
    """--progress works without a terminal."""
    assert (await administrate("backup", place / "dump", "--progress")).progress
    done = await administrate("restore", place / "dump", "--progress", DATABASE_URL=empty_database)
    assert {f"restoring {table}" for table in CONTENT} <= set(done.progress)


def stand_in(directory, name, version, body=""):
    """Put a program of this version into a directory for PATH."""
    directory.mkdir(exist_ok=True)
    program = directory / name
    program.write_text(f"#!/bin/sh\n[ $1 = --version ] && exec echo '{name} (PostgreSQL) {version}.1'\n{body}\n")
    program.chmod(0o755)
    return program


async def test_restore_skips_timeouts_that_the_server_lacks(administrate, filled, empty_database, place):
    """A newer pg_restore may set a timeout that the server doesn't know. Restoring switches off those that it knows."""
    await administrate("backup", place / "dump")
    real = find_binaries(place, None) / "pg_restore"
    unknown = "/^SET lock_timeout/a SET future_timeout = 0;"
    slow = "/^SET row_security/a SELECT pg_sleep(0.6);"
    stand_in(place / "bin", "pg_restore", 99, f"'{real}' \"$@\" | sed -e '{unknown}' -e '{slow}'")
    search = f"{place / 'bin'}:{os.environ['PATH']}"
    hasty = "-c statement_timeout=500 -c transaction_timeout=500"
    await administrate("restore", place / "dump", DATABASE_URL=empty_database, PATH=search, PGOPTIONS=hasty)
    assert content(empty_database) == content(filled.dsn)


async def test_restore_keeps_data_that_looks_like_a_setting(administrate, migrated_database, place, postgres):
    """Restoring adapts only the settings at the beginning of pg_restore's output."""
    line = "SET transaction_timeout = 0;"
    run_sql(migrated_database, "CREATE TABLE a_lines AS SELECT %s AS line", (line,))
    await administrate("backup", place / "dump", DATABASE_URL=migrated_database)
    run_sql(migrated_database, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await administrate("restore", place / "dump", DATABASE_URL=migrated_database)
    assert run_sql(migrated_database, "SELECT line FROM a_lines") == [(line,)]


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (
            "'{real}' \"$@\" | sed '/^COPY public.users/q'; echo 'pg_restore: error: disk on fire' >&2; exit 1",
            "pg_restore.*disk on fire",
        ),
        ("'{real}' \"$@\" | sed '/^COMMIT;$/d'; kill -KILL $$", "pg_restore failed: status -9"),
        ("'{real}' \"$@\" | sed 's/^CREATE INDEX/CREATE FOLDER/'", 'psql failed: ERROR: .*near "FOLDER"'),
    ],
    ids=["reading", "killed", "writing"],
)
async def test_restore_changes_nothing_when_pg_restore_or_psql_fails(
    administrate, filled, empty_database, place, broken, complaint
):
    """The error names the program that failed."""
    await administrate("backup", place / "dump")
    real = find_binaries(place, None) / "pg_restore"
    script = f"[ $1 = --list ] && exec '{real}' \"$@\"\n" + broken.format(real=real)
    stand_in(place / "bin", "pg_restore", 99, script)
    search = f"{place / 'bin'}:{os.environ['PATH']}"
    with pytest.raises(FatalError, match=complaint):
        await administrate("restore", place / "dump", DATABASE_URL=empty_database, PATH=search)
    assert relations(empty_database) == 0


async def test_backup_of_tables_in_another_schema_is_refused(administrate, migrated_database, empty_database, place):
    """The restored tables would be in that schema, where no service looks for them."""
    run_sql(migrated_database, "ALTER SCHEMA public RENAME TO other")
    program = find_binaries(place, None) / "pg_dump"
    subprocess.run([program, "--format=custom", f"--file={place}/dump", f"--dbname={migrated_database}"], check=True)
    with pytest.raises(FatalError, match=r"^solisync: .*/dump has the tables in the schema other, and .* public$"):
        await administrate("restore", place / "dump", DATABASE_URL=empty_database)
    assert relations(empty_database) == 0


async def test_restore_that_brings_nothing_fails(administrate, filled, empty_database, place):
    """A psql that exits with 0 is no proof. No schema is made that would look like an empty restored database."""
    await administrate("backup", place / "dump")
    stand_in(place / "bin", "psql", 99, "exec cat > /dev/null")
    search = f"{place / 'bin'}:{os.environ['PATH']}"
    with pytest.raises(FatalError, match=r"^solisync: the restore of .*/dump has ended, but its data is not in "):
        await administrate("restore", place / "dump", DATABASE_URL=empty_database, PATH=search)
    assert relations(empty_database) == 0


def test_embedded_database_moves_to_another_directory(initialized, place):
    """Root can move it too, although the server runs as another user. No server keeps running."""
    old, new, file = place / "old", place / "new", place / "dump"
    assert run(*SOLISYNC, "--migrate", SOLISYNC_DATA_DIR=initialized(old)).status == 0
    done = run(*SOLISYNC, "backup", file, SOLISYNC_DATA_DIR=old)
    assert (done.status, done.err) == (0, [])
    assert file.stat().st_uid == os.geteuid()
    done = run(*SOLISYNC, "restore", file, "--data-dir", new)
    assert (done.status, done.err) == (0, [])
    assert done.out == [f"restored 0 players from {file}; all players have to log in again"]
    assert run(*SOLISYNC, "status", "--data-dir", new).status == 0
    again = run(*SOLISYNC, "restore", file, "--data-dir", new)
    assert (again.status, len(again.err)) == (1, 1)
    assert not processes_in(place)


@pytest.fixture
def choosing(place, reactor, shared_dsn, monkeypatch):
    """Return a function that reports which program is chosen: "ours", "installed" or the error."""

    async def choosing(find, name, installed, *given, **more):
        if installed:
            stand_in(place / "bin", name, installed)
        real = programs._major
        monkeypatch.setattr(programs, "_major", lambda path: real(path) if path.parent == place / "bin" else 18)
        settings = Settings.from_environ({"DATABASE_URL": shared_dsn})
        try:
            found = find(name, settings, {"PATH": str(place / "bin")}, *given, **more)
            found = found if isinstance(found, str) else await found
        except FatalError as error:
            return str(error)
        return "installed" if found == str(place / "bin" / name) else "ours"

    return choosing


@pytest.mark.parametrize(
    ("server", "installed", "encrypted", "expected"),
    [
        (18, None, False, "ours"),
        (18, 15, False, "ours"),
        (18, 18, False, "ours"),
        (18, 19, False, "ours"),
        (15, 15, False, "installed"),
        (15, None, False, "ours"),
        (19, 19, False, "installed"),
        (19, 18, False, "needs pg_dump of PostgreSQL 19 in PATH"),
        (18, None, True, "needs pg_dump of PostgreSQL 18 with TLS in PATH"),
        (18, 15, True, "needs pg_dump of PostgreSQL 18 with TLS in PATH"),
        (18, 18, True, "installed"),
    ],
)
async def test_backup_chooses_the_pg_dump_that_fits_the_server(
    choosing, reactor, shared_dsn, monkeypatch, server, installed, encrypted, expected
):
    """The choice is the closest version that isn't older than the server; over TLS, the one in PATH."""
    connection = await open_connection(reactor, shared_dsn)

    async def execute(sql):
        return [(server,)]

    monkeypatch.setattr(Connection, "encrypted", encrypted)
    monkeypatch.setattr(connection, "execute", execute)
    try:
        assert expected in await choosing(find_closest, "pg_dump", installed, connection)
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("installed", "encrypted", "expected"),
    [
        (None, False, "ours"),
        (15, False, "ours"),
        (19, False, "installed"),
        (15, True, "installed"),
        (None, True, "needs psql with TLS in PATH"),
    ],
)
async def test_restore_chooses_the_newest_pg_restore(choosing, installed, encrypted, expected):
    """The version of the server doesn't matter; over TLS, the choice is the one in PATH."""
    assert expected in await choosing(find_newest, "psql", installed, encrypted=encrypted)


async def test_dsn_with_sslpassword_is_refused(administrate, filled, place):
    """The program gets a password in its environment; PostgreSQL has no variable for sslpassword."""
    with pytest.raises(FatalError, match="DATABASE_URL has sslpassword"):
        await administrate("backup", place / "dump", DATABASE_URL=f"{filled.dsn} sslpassword=canary")
