"""Times of replays that version 1.0.0 stored, or stores during an upgrade (migrations/0043)."""

import pytest

from solisync.postgres.migrate import load_migrations, migrate
from tests.harness.postgres import run_sql

SHORTENING = 43
STORE = """
    INSERT INTO replays (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, recorded_at)
    SELECT gen_random_uuid(), id, now(), '{}', 2, 'Zen', 'DrawOne', '1', '1', %s || repeat('0', %s) || %s FROM users
"""


@pytest.mark.parametrize(
    ("digits", "offset", "kept"),
    [
        (1_000_000, "+02:00", "2026-01-01T00:00:00.5000000000+02:00"),
        (15, "z", "2026-01-01T00:00:00.5000000000z"),
        (8, "-08:00", "2026-01-01T00:00:00.500000000-08:00"),
    ],
)
async def test_stored_time_keeps_ten_digits(reactor, empty_database, digits, offset, kept):
    """The migration shortens stored times, and a trigger shortens those that nodes of 1.0.0 store afterwards."""
    migrations = load_migrations()
    await migrate(reactor, empty_database, tuple(each for each in migrations if each.number < SHORTENING))
    run_sql(empty_database, "INSERT INTO users VALUES (gen_random_uuid(), 'ann', 'none', now())")
    time = "2026-01-01T00:00:00.5", digits, offset
    run_sql(empty_database, STORE, time)
    await migrate(reactor, empty_database, migrations)
    run_sql(empty_database, STORE, time)
    assert run_sql(empty_database, "SELECT recorded_at FROM replays") == [(kept,), (kept,)]
