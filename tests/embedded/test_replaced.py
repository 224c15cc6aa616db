"""The mark in an embedded database that a service has replaced by another server."""

import os
import shutil

import pytest

from solisync.commands.running import reached
from solisync.embedded import data_directory
from solisync.embedded.data_directory import MARK, check_not_replaced, record_use
from solisync.errors import FatalError
from solisync.settings.settings import Settings
from tests.harness.constants import DSN_PASSWORD
from tests.harness.entry_points import SERVE, SOLISYNC, launch_service, start
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


@pytest.mark.parametrize("workers", ["1", "2"])
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


def test_no_mark_is_made_without_an_embedded_database(tmp_path):
    record_use(tmp_path / "data", URL)
    record_use(tmp_path, URL)
    assert list(tmp_path.iterdir()) == []


def test_mark_survives_a_kill_while_it_is_written(data_dir, monkeypatch):
    """A killed start leaves the old mark or the new one, and hinders no later start."""
    record_use(data_dir, "host=old")

    def killed(*_):
        raise SystemExit

    monkeypatch.setattr(data_directory.Path, "rename", killed)
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
def test_mark_of_root_belongs_to_the_owner_of_the_cluster(data_dir):
    """The database's user can read and remove the mark of a service that runs as root."""
    shutil.chown(data_dir / "postgresql", 65534, 65534)
    record_use(data_dir, URL)
    found = (data_dir / "postgresql" / MARK).stat()
    assert (found.st_uid, found.st_mode & 0o777) == (65534, 0o600)
