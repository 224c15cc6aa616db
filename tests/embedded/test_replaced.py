"""The marks of a service that uses another server, in its data directory and in its embedded database there."""

import os
import shutil
from pathlib import Path

import pytest
from twisted.logger import capturedLogs

from solisync.commands.running import reached
from solisync.embedded import marks
from solisync.embedded.marks import MARK, check_may_be_made, check_not_replaced, record_use
from solisync.errors import FatalError
from solisync.settings.settings import Settings
from tests.harness.constants import DSN_PASSWORD, NO_DATA_DIR, SECRET
from tests.harness.entry_points import SERVE, SOLISYNC, TAC, TWISTD, launch_service, start
from tests.harness.original_server import create
from tests.harness.processes import run
from tests.harness.service import ready

URL = f"postgresql://solisync:{DSN_PASSWORD}@db.example.org:5433/players?sslmode=verify-full"


@pytest.fixture
def data_dir(place):
    """A data directory with a cluster, as far as the mark is concerned."""
    (place / "postgresql").mkdir()
    return place


async def refusal(reactor, data_dir, *, create=False):
    """Return the text with which a command refuses the embedded database."""
    settings = Settings.from_environ({"SOLISYNC_DATA_DIR": str(data_dir)})
    with pytest.raises(FatalError) as refused:
        async with reached(settings, reactor, lambda dsn: None, create=create):
            pass
    return str(refused.value)


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
async def test_commands_refuse_an_embedded_database_that_a_service_has_replaced(
    reactor, launch, initialized, place, shared_dsn, workers
):
    """A backup without the DATABASE_URL of the service fails with one line until the service has moved back."""
    data_dir = initialized(place / "data")
    backup = (*SOLISYNC, "backup", place / "dump")
    moved = launch_service(launch, shared_dsn, SOLISYNC_DATA_DIR=data_dir, SOLISYNC_WORKERS=workers)
    await ready(reactor, moved.client())
    assert moved.stop() == 0
    refused = run(*backup, SOLISYNC_DATA_DIR=data_dir)
    assert (refused.status, len(refused.err)) == (1, 1)
    assert "dbname=shared" in refused.err[0]
    assert "DATABASE_URL" in refused.err[0]
    assert not (place / "dump").exists()
    moved_back = start(launch, *SERVE, data_dir=data_dir, SOLISYNC_WORKERS=workers)
    await ready(reactor, moved_back.client())
    assert "is in use again" in moved_back.log
    assert moved_back.stop() == 0
    assert run(*backup, SOLISYNC_DATA_DIR=data_dir).status == 0


@pytest.mark.parametrize("create", [False, True])
async def test_refusal_names_the_server_without_the_password(reactor, data_dir, create):
    """The refusal has the host, port and database of the DATABASE_URL, and nothing else of it."""
    record_use(data_dir, URL)
    said = await refusal(reactor, data_dir, create=create)
    assert "host=db.example.org port=5433 dbname=players" in said
    assert DSN_PASSWORD not in said + (data_dir / "postgresql" / MARK).read_text()
    assert "\n" not in said


def test_mark_names_the_latest_server(data_dir):
    """Another DATABASE_URL replaces the mark; a DATABASE_URL without a server makes a mark, too."""
    record_use(data_dir, URL)
    record_use(data_dir, "service=players")
    with pytest.raises(FatalError, match="uses another database:"):
        check_not_replaced(data_dir)
    record_use(data_dir, URL)
    with pytest.raises(FatalError, match="port=5433"):
        check_not_replaced(data_dir)
    record_use(data_dir, None)
    check_not_replaced(data_dir)


def test_mark_stays_with_its_cluster(data_dir):
    """A new cluster in the same directory is not marked; the old one is, even when it is moved."""
    record_use(data_dir, URL)
    other = data_dir / "other"
    other.mkdir()
    (data_dir / "postgresql").rename(other / "postgresql")
    check_not_replaced(data_dir)
    (data_dir / "postgresql").mkdir()
    check_not_replaced(data_dir)
    with pytest.raises(FatalError):
        check_not_replaced(other)


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
async def test_start_that_has_lost_its_database_url_makes_no_new_database(reactor, launch, place, shared_dsn, workers):
    """The start ends with one line that names the setting and the switch, until the switch is given once."""
    data_dir = place / "data"
    moved = launch_service(launch, shared_dsn, SOLISYNC_DATA_DIR=data_dir, SOLISYNC_WORKERS=workers)
    await ready(reactor, moved.client())
    assert moved.stop() == 0
    assert [each.name for each in data_dir.iterdir()] == [MARK]
    given = {"JWT_SECRET": SECRET, "SOLISYNC_DATA_DIR": data_dir, "SOLISYNC_WORKERS": workers}
    for words in (SOLISYNC, TWISTD) if workers == "2" else (SOLISYNC, TWISTD, TAC):
        refused = run(*words, **given)
        assert refused.status == 1
        (line,) = [line for line in refused.out + refused.err if "there is no database" in line]
        assert line.startswith(f"solisync: there is no database in {data_dir}, and the service was started with host=")
        assert all(word in line for word in ("dbname=shared", "set DATABASE_URL", "--new-database"))
    assert [each.name for each in data_dir.iterdir()] == [MARK]
    new = start(launch, *SERVE, data_dir=data_dir, SOLISYNC_WORKERS=workers, SOLISYNC_NEW_DATABASE="on")
    await ready(reactor, new.client())
    assert "is in use again" not in new.log
    assert new.stop() == 0
    again = start(launch, *SERVE, data_dir=data_dir, SOLISYNC_WORKERS=workers)
    await ready(reactor, again.client())
    assert again.stop() == 0


@pytest.mark.parametrize("words", [["--migrate"], ["restore", "dump"], ["import-original", "file"]])
def test_command_makes_no_new_database_where_the_service_uses_another(place, words):
    """A command with --new-database makes it."""
    (place / "dump").write_bytes(b"PGDMP")
    create(place / "file")
    record_use(place / "data", URL)
    refused = run(*SOLISYNC, *words, cwd=place, SOLISYNC_DATA_DIR=place / "data")
    assert (refused.status, len(refused.err)) == (1, 1)
    assert "--new-database" in refused.err[0]
    assert [each.name for each in (place / "data").iterdir()] == [MARK]
    if words == ["--migrate"]:
        assert run(*SOLISYNC, *words, "--new-database", SOLISYNC_DATA_DIR=place / "data").status == 0


async def test_command_without_a_database_names_the_setting_that_it_lacks(administrate, place):
    """The doctor finds the same. Neither changes anything."""
    record_use(place, URL)
    given = {"DATABASE_URL": "", "SOLISYNC_DATA_DIR": place}
    for words in (["status"], ["backup", place / "dump"]):
        with pytest.raises(FatalError, match=r"started with host=db.example.org .*: give this command the DATABASE_"):
            await administrate(*words, **given)
    records = (await administrate("doctor", "--json", fails=FatalError, **given)).records
    (found,) = [record for record in records if record["subject"] == "database"]
    assert (found["level"], "port=5433 dbname=players" in found["text"]) == ("wrong", True)
    assert "DATABASE_URL" in found["advice"]
    assert [each.name for each in place.iterdir()] == [MARK]


def test_mark_of_the_directory_survives_the_deletion_of_the_cluster(data_dir):
    """After a move, an operator deletes the old cluster. A start with the cluster removes both marks."""
    record_use(data_dir, URL)
    (data_dir / "postgresql").rename(data_dir / "gone")
    with pytest.raises(FatalError, match=r"host=db\.example\.org port=5433 dbname=players"):
        check_may_be_made(data_dir, new=False)
    check_may_be_made(data_dir, new=True)
    assert DSN_PASSWORD not in (data_dir / MARK).read_text()
    (data_dir / "gone").rename(data_dir / "postgresql")
    check_may_be_made(data_dir, new=False)
    record_use(data_dir, None)
    (data_dir / "postgresql").rename(data_dir / "gone")
    check_may_be_made(data_dir, new=False)


def test_service_is_silent_where_no_data_directory_can_be_made():
    """A service with a DATABASE_URL needs no data directory, as in a read-only container."""
    with capturedLogs() as events:
        record_use(Path(NO_DATA_DIR), URL)
        record_use(Path(NO_DATA_DIR), None)
    assert events == []


def test_mark_survives_a_kill_while_it_is_written(data_dir, monkeypatch):
    """A killed start leaves the old mark or the new one, and hinders no later start."""
    record_use(data_dir, "host=old")

    def killed(*_):
        raise SystemExit

    monkeypatch.setattr(marks.Path, "rename", killed)
    with pytest.raises(SystemExit):
        record_use(data_dir, "host=new")
    monkeypatch.undo()
    with pytest.raises(FatalError, match="host=old"):
        check_not_replaced(data_dir)
    record_use(data_dir, "host=new")
    with pytest.raises(FatalError, match="host=new"):
        check_not_replaced(data_dir)


def test_links_in_place_of_the_mark_are_not_followed(data_dir, tmp_path):
    """A link could lead to a file of another user, to be overwritten or shown."""
    secret = tmp_path / "secret"
    secret.write_text("canary of another user\n")
    for name in (MARK, f"{MARK}.new"):
        (data_dir / "postgresql" / name).symlink_to(secret)
    with pytest.raises(FatalError, match="another database"):
        check_not_replaced(data_dir)
    record_use(data_dir, URL)
    assert secret.read_text() == "canary of another user\n"
    with pytest.raises(FatalError, match="port=5433"):
        check_not_replaced(data_dir)


def test_service_starts_when_the_mark_cannot_be_written(data_dir):
    """The service needs only its own server."""
    (data_dir / "postgresql" / f"{MARK}.new").mkdir()  # which root can't replace by a file either
    record_use(data_dir, URL)
    check_not_replaced(data_dir)


@pytest.mark.skipif(os.geteuid() != 0, reason="as root alone, files can belong to others")
def test_mark_of_root_belongs_to_the_owner_of_its_place(data_dir):
    """The database's user can read and remove the mark of a service that runs as root."""
    shutil.chown(data_dir, 65534, 65534)
    shutil.chown(data_dir / "postgresql", 65533, 65533)
    record_use(data_dir, URL)
    for place, owner in ((data_dir, 65534), (data_dir / "postgresql", 65533)):
        found = (place / MARK).stat()
        assert (found.st_uid, found.st_mode & 0o777) == (owner, 0o600)
