"""docs/schema.sql: each table, index, function and trigger as it is after all migrations, for people to read."""

import os
import re
import subprocess

from solisync.postgres.binaries import ENVIRONMENT, find_binaries
from tests.harness.constants import ROOT

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
