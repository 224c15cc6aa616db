"""Sessions that older versions imported, which had neither an id nor times (migrations 0062 to 0064)."""

import psycopg2
import pytest

from solisync.postgres.migrate import load_migrations, migrate
from tests.harness.postgres import run_sql

MIGRATIONS = load_migrations()
BEFORE = tuple(each for each in MIGRATIONS if each.number <= 61)
DEFAULTS = tuple(each for each in MIGRATIONS if each.number <= 62)
IMPORT = """
    WITH player AS (
        INSERT INTO users (id, username, password_hash, created_at) VALUES (gen_random_uuid(), %s, 'none', now())
        RETURNING id
    )
    INSERT INTO refresh_tokens (jti, user_id, expires_at)
    SELECT gen_random_uuid(), id, now() + n * interval '1 minute' FROM player, generate_series(1, %s) AS n
"""
AS_BEFORE = "session_id = jti AND begun_at = expires_at - interval '30 days' AND used_at = begun_at"


async def test_imported_sessions_keep_their_ids_and_times(reactor, empty_database):
    """More than a batch of them; a session of this version stays as it is, and a killed migration is repeated."""
    await migrate(reactor, empty_database, BEFORE)
    run_sql(empty_database, IMPORT, ("ann", 4_500))
    run_sql(empty_database, IMPORT, ("bob", 1))
    whole = "UPDATE refresh_tokens SET session_id = gen_random_uuid(), begun_at = now(), used_at = now()"
    run_sql(empty_database, f"{whole} WHERE user_id = (SELECT id FROM users WHERE username = 'bob')")
    later = [each.name for each in MIGRATIONS if each.number > 61]
    assert await migrate(reactor, empty_database, MIGRATIONS) == later
    kept = f"SELECT count(*) FROM refresh_tokens WHERE {AS_BEFORE}"
    assert run_sql(empty_database, kept) == [(4_500,)]
    run_sql(empty_database, next(each.sql for each in MIGRATIONS if each.number == 63))
    assert run_sql(empty_database, kept) == [(4_500,)]


async def test_import_of_an_older_node_begins_whole_sessions(reactor, empty_database):
    """It gives three columns, as soon as the first of these migrations has run. No statement can empty them."""
    await migrate(reactor, empty_database, DEFAULTS)
    run_sql(empty_database, IMPORT, ("ann", 2))
    whole = "SELECT count(DISTINCT session_id), count(begun_at), count(used_at) FROM refresh_tokens"
    assert run_sql(empty_database, whole) == [(2, 2, 2)]
    with pytest.raises(psycopg2.errors.CheckViolation):
        run_sql(empty_database, "UPDATE refresh_tokens SET used_at = NULL")
