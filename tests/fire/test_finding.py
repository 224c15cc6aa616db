"""Searches for players stay quick with a million players."""

import pytest

from solisync.storage.players import players
from tests.harness.plans import plan
from tests.harness.postgres import run_sql

FILL = """
    SET session_replication_role = replica;
    INSERT INTO users (id, username, password_hash, created_at)
    SELECT gen_random_uuid(), 'Player_' || n, 'none', now() FROM generate_series(1, %s) AS n;
    INSERT INTO leaderboard (user_id, display_name, recorded_at, visible)
    SELECT id, 'The ' || username, now(), true FROM users;
"""


@pytest.mark.short
async def test_players_are_found_by_an_index_or_in_bounded_pages(migrated_database, full, figure):
    """A search for a beginning takes milliseconds. A search for a part reads pages of names, each in a bounded time."""
    count = 1_000_000 if full else 20_000
    run_sql(migrated_database, FILL, (count,))
    run_sql(migrated_database, "VACUUM ANALYZE users")
    run_sql(migrated_database, "VACUUM ANALYZE leaderboard")
    found = plan(migrated_database, players.by_beginning.statement, "pLAYER_77", "", players.MOST + 1)
    figure(f"the beginning of a name among {count:,}: {found.milliseconds:.2f} ms, {found.buffers} buffers")
    assert "users_folded" in found.text
    assert found.buffers < 40 * players.MOST
    assert found.milliseconds < 50  # ten times the target
    last = run_sql(migrated_database, "SELECT username FROM users ORDER BY username OFFSET %s LIMIT 1", (count // 2,))[
        0
    ][0]
    page = plan(migrated_database, players.USERNAMES, last, "nobody", players.PAGE, players.MOST + 1)
    figure(f"a part of {players.PAGE:,} names of {count:,}: {page.milliseconds:.0f} ms, {page.buffers} buffers")
    assert "users_username_key" in page.text
    assert "Seq Scan on users" not in page.text
    ((user_id,),) = run_sql(
        migrated_database, "SELECT user_id FROM leaderboard ORDER BY 1 OFFSET %s LIMIT 1", (count // 2,)
    )
    page = plan(migrated_database, players.DISPLAY_NAMES, user_id, "nobody", players.PAGE, players.MOST + 1)
    figure(f"a part of {players.PAGE:,} display names of {count:,}: {page.milliseconds:.0f} ms, {page.buffers} buffers")
