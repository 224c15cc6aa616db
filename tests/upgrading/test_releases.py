"""Databases of former releases work under this version: docs/upgrading.md."""

import json
import lzma
import os
import re
import subprocess
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from pkgutil import walk_packages

import pytest

from solisync import __version__, moving_in, storage
from solisync.embedded.programs import ENVIRONMENT, find_binaries
from solisync.postgres.declared import statements_of
from solisync.postgres.migrate import load_migrations, migrate
from tests.harness.administration import administration
from tests.harness.console import Console
from tests.harness.housekeeping import make_housekeeping
from tests.harness.postgres import connect, run_sql
from tests.harness.service import start
from tests.upgrading import played

HERE = Path(__file__).parent
RELEASES = sorted(file.name.removesuffix(".sql.xz") for file in HERE.glob("*.sql.xz"))
BEFORE = "1.1.0"  # nodes of it run beside this version
STATEMENTS = {
    statement.name: statement
    for package in (moving_in, storage)
    for module in walk_packages(package.__path__, f"{package.__name__}.")
    for statement in statements_of(import_module(module.name))
}
WRITE = os.environ.get("WRITE_RELEASE")
# What this version answers otherwise on purpose: replays of a suspended player are not listed, admins get the timeline
# of a refuted replay up to its fault, and another player than oneself has a code of its own.
MEANT = re.compile(
    r" root /(replays|players/[0-9a-f-]+/replays) answer replays \d+ listed: True is now False"
    r"| root /replays/[0-9a-f-]+/timeline (status: 409 is now 200"
    r"|answer error: 'replay can not be played back' is now 'nothing')"
    r"| ann /api/players/[a-z]+/replays answer error: 'user not found' is now 'player not found'"
    r"| eve /api/me/export answer account replay_bytes: None is now 4096"
)
OFTEN_EMPTY = {
    "public_replays_begin",  # it has a row where a large database was upgraded
    "large_accounts",  # only while an act on one continues
}
SETTINGS = {"SOLISYNC_ADMIN_LISTEN": "tcp:0:interface=127.0.0.1"}


async def serving(reactor, dsn, checkers=0):
    """A service on a database, and its console with an admin in it."""
    running = await start(reactor, dsn, settings=SETTINGS | {"SOLISYNC_CHECKERS": str(checkers)})
    console = Console(running.service.admin_address.port, administration(reactor, dsn))
    return running, await console.sign_in(played.ADMIN)


def tables(dsn):
    """Return the number of rows of each table."""
    names = run_sql(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {name: run_sql(dsn, f"SELECT count(*) FROM {name}")[0][0] for (name,) in names}


def dumped(dsn, place):
    """Return the database as SQL, in statements that any client can run."""
    words = ["--no-owner", "--no-privileges", "--rows-per-insert=100"]
    program = find_binaries(place, None) / "pg_dump"
    dump = subprocess.run([program, *words, dsn], env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout
    return re.sub(r"^(--.*|\\(un)?restrict .*|)\n", "", dump, flags=re.M)


@pytest.mark.long
async def test_release_dump_has_rows_in_each_table(reactor, migrated_database, open_database, place):
    """Two requests for the same thing have the same answer.

    `make release-dump` keeps the database for the test below.
    """
    dsn, administrate = migrated_database, administration(reactor, migrated_database)
    running, _ = await serving(reactor, dsn, checkers=1)
    await played.play(reactor, running, administrate, place)
    await running.service.stopService()  # what happened to accounts is stored by now
    running, console = await serving(reactor, dsn)
    secrets = await played.look_after(running, console)
    await running.service.stopService()
    running, console = await serving(reactor, dsn)
    played.keep(running)
    await administrate("admins", "code", played.ADMIN)
    await make_housekeeping(open_database(dsn), reactor).prune()  # counts the days
    assert {name for name, rows in tables(dsn).items() if not rows} <= OFTEN_EMPTY
    dump = dumped(dsn, place)
    said = await played.answers(running, console)
    found = differences(said, await played.answers(running, console))
    assert "\n".join(found) == ""
    await running.service.stopService()
    if WRITE:
        (HERE / f"{__version__}.sql.xz").write_bytes(lzma.compress(dump.encode(), preset=9))
        kept = {"secrets": secrets, "answers": said}
        (HERE / f"{__version__}.json.xz").write_bytes(lzma.compress(json.dumps(kept).encode(), preset=9))
        prepared = {name: statement.preparation for name, statement in STATEMENTS.items()}
        (HERE / f"{__version__}.statements.xz").write_bytes(lzma.compress(json.dumps(prepared).encode(), preset=9))


@pytest.mark.parametrize("version", RELEASES)
async def test_database_of_a_release_serves_after_the_upgrade(reactor, empty_database, version):
    """All later migrations are applied. Answers stay the same, and players and operators continue."""
    run_sql(empty_database, read(f"{version}.sql.xz"))
    kept = json.loads(read(f"{version}.json.xz"))
    ((latest,),) = run_sql(empty_database, "SELECT max(number) FROM public.schema_migrations")
    later = [each.name for each in load_migrations() if each.number > latest]
    assert await migrate(reactor, empty_database, load_migrations()) == later
    assert run_sql(empty_database, "SELECT name FROM admins") == [(played.ADMIN,)]
    running, console = await serving(reactor, empty_database)
    try:
        found = differences(kept["answers"], await played.answers(running, console))
        assert "\n".join(each for each in found if not MEANT.fullmatch(each)) == ""
        await played.go_on(reactor, running, console, kept["secrets"])
    finally:
        await running.service.stopService()


def test_statements_of_the_version_before_fit_the_schema(server):
    """A node of that version beside this one finds every table, column and function that a statement of it names."""
    before = json.loads(read(f"{BEFORE}.statements.xz"))
    assert len(before) > 150
    connection = connect(server.dsn)
    try:
        with connection.cursor() as cursor:
            for preparation in before.values():
                if " AS LOCK TABLE" in preparation:
                    cursor.execute(f"BEGIN; {preparation.partition(' AS ')[2]}; ROLLBACK")
                else:
                    cursor.execute(preparation)
    finally:
        connection.close()


def read(name):
    return lzma.decompress((HERE / name).read_bytes()).decode()


def differences(old, new, path=""):
    """Return the places where a new answer lacks what an old one had. The order of players doesn't matter."""
    if path.endswith(" /players answer players"):
        old, new = (sorted(players, key=itemgetter("username")) for players in (old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            found
            for key in old.keys() - played.NOW
            for found in differences(old[key], new.get(key, "nothing"), f"{path} {key}")
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            found for n, pair in enumerate(zip(old, new, strict=True)) for found in differences(*pair, f"{path} {n}")
        ]
    return [] if old == new else [f"{path}: {old!r:.200} is now {new!r:.200}"]
