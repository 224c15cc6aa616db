"""migrations/baseline.sql: the schema with which a new database begins."""

import lzma
import re
import subprocess

import pytest

from solisync.embedded.programs import ENVIRONMENT, find_binaries
from solisync.klondike import PREFERRED, Status
from solisync.postgres.migrate import load_migrations, migrate
from solisync.rules.boards import OWN
from solisync.rules.counting import MOST_ANSWERS
from solisync.rules.replays import CHARGE_MIN
from solisync.storage.replays.checks import OLD
from tests.harness.constants import ROOT
from tests.harness.postgres import run_sql

RELEASE = ROOT / "tests" / "upgrading" / "1.0.0.sql.xz"


def definitions(dsn, place):
    """Return the schema of a database as pg_dump writes it, without the lines that differ at each run."""
    command = [find_binaries(place, None) / "pg_dump", "--schema-only", "--no-owner", "--no-privileges", dsn]
    dump = subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout
    return re.sub(r"^(\\(un)?restrict |CREATE SCHEMA public|COMMENT ON SCHEMA public|--).*\n+", "", dump, flags=re.M)


def contents(dsn):
    """Return the files that a database has applied, and the rows that a new one has in other tables."""
    applied = run_sql(dsn, "SELECT number, name, checksum FROM public.schema_migrations ORDER BY number")
    return applied, run_sql(dsn, "SELECT id FROM public.replay_sweep")


async def test_baseline_equals_the_schema_of_1_0_0(reactor, empty_database, place):
    """A new database has the definitions of a database of version 1.0.0, and the same list of applied files."""
    await migrate(reactor, empty_database, load_migrations()[:1])
    new = definitions(empty_database, place), contents(empty_database)
    run_sql(empty_database, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    run_sql(empty_database, lzma.decompress(RELEASE.read_bytes()).decode())
    assert new == (definitions(empty_database, place), contents(empty_database))


def test_each_trigger_and_function_has_a_reason():
    """A comment precedes each function, and each trigger that doesn't follow one directly."""
    for file in sorted((ROOT / "migrations").glob("*.sql")):
        text = file.read_text("utf-8")
        assert not re.findall(r"\n\n(CREATE (?:OR REPLACE )?(?:FUNCTION|TRIGGER) \w+)", text), file.name


@pytest.mark.parametrize(
    ("function", "pattern", "value"),
    [
        ("replay_charge", r"greatest\(size, (\d+)\)", CHARGE_MIN),
        ("remember_states", r"<= (\d+) THEN known.pushed", MOST_ANSWERS),
        ("remember_states", r"<= (\d+) THEN known.answers", MOST_ANSWERS),
        ("old_check", r"SELECT (\d+) \+", OLD),
        ("place_replay", r"status = '(\w+)'", Status.VERIFIED),
        ("place_replay", r"ruleset = '([\d-]+)'", PREFERRED.name),
        ("place_replay", r"board = '(\w+)'", OWN),
        ("rank_player", r"AS board WHERE board <> '(\w+)'", OWN),
        ("rank_whoever_opts", r"board <> '(\w+)'", OWN),
    ],
)
def test_constants_in_functions_equal_those_in_python(shared_dsn, function, pattern, value):
    ((source,),) = run_sql(shared_dsn, "SELECT prosrc FROM pg_proc WHERE proname = %s", (function,))
    assert re.findall(pattern, source) == [str(value)]
