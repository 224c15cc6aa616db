"""docs/schema.sql: each table, index, function and trigger as it is after all migrations, for people to read."""

import os
import re
import subprocess

import pytest

from solisync.klondike import PREFERRED, Status
from solisync.postgres.binaries import ENVIRONMENT, find_binaries
from solisync.rules.boards import OWN
from solisync.rules.counting import MOST_ANSWERS
from solisync.rules.replays import CHARGE_MIN
from solisync.storage.checks import OLD
from tests.harness.constants import ROOT
from tests.harness.postgres import run_sql

SCHEMA = ROOT / "docs" / "schema.sql"
HEAD = """\
-- The schema as it is after all migrations. `make schema` writes this file, which is only for reading.
-- docs/architecture.md, "What the database decides", says what the functions and triggers are for.
"""


def schema(dsn, place):
    """The definitions of a migrated database, without the lines that every database has."""
    words = ["--schema-only", "--no-owner", "--no-privileges", "--exclude-table=schema_migrations"]
    program = find_binaries(place, None) / "pg_dump"
    dump = subprocess.run([program, *words, dsn], env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout
    common = r"^(--.*|SET .*|SELECT pg_catalog.*|\\(un)?restrict .*)\n"
    return HEAD + re.sub(r"\n{3,}", "\n\n", re.sub(common, "", dump, flags=re.M).replace("public.", ""))


def test_the_schema_is_written_down(shared_dsn, place):
    """docs/schema.sql is what the migrations lead to; `make schema` writes it anew."""
    found = schema(shared_dsn, place)
    if os.environ.get("WRITE_SCHEMA"):
        SCHEMA.write_text(found, "utf-8")
    assert found == SCHEMA.read_text("utf-8"), "run make schema"


def test_each_trigger_and_function_is_explained():
    """docs/architecture.md says what each of them keeps true or decides."""
    section = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("\n## What the database decides")[2]
    explained = set(re.findall(r"`(\w+)`", section.partition("\n## ")[0]))
    text = SCHEMA.read_text("utf-8")
    triggers = set(re.findall(r"^CREATE (?:CONSTRAINT )?TRIGGER (\w+)", text, re.M))
    functions = set(re.findall(r"^CREATE FUNCTION (\w+)", text, re.M))
    run_by_triggers = set(re.findall(r"EXECUTE FUNCTION (\w+)", text))
    assert triggers | (functions - run_by_triggers) <= explained


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
def test_numbers_that_the_database_knows_too(shared_dsn, function, pattern, value):
    """A number or word in a function is the same as the constant in Python."""
    ((source,),) = run_sql(shared_dsn, "SELECT prosrc FROM pg_proc WHERE proname = %s", (function,))
    assert re.findall(pattern, source) == [str(value)]
