"""Counting the numbers of a day takes at most two seconds of PostgreSQL, with a million players."""

import pytest

from solisync.storage.operators.daily_numbers import COUNT, of_days
from tests.harness.postgres import connect, run_sql

TARGET = 2_000  # milliseconds

# Half of the players were active today, by a session or by a push; all of them have uploaded within a year.
FILL = """
    SET session_replication_role = replica;
    INSERT INTO users (id, username, password_hash, created_at, guest)
    SELECT gen_random_uuid(), 'Player_' || n, 'none', now() - random() * interval '1 year',
        CASE n %% 10 WHEN 0 THEN true END
    FROM generate_series(1, %(players)s) AS n;
    INSERT INTO refresh_tokens (jti, user_id, session_id, begun_at, used_at, expires_at, user_agent)
    SELECT gen_random_uuid(), id, gen_random_uuid(), used_at, used_at, used_at + interval '30 days', 'A game 1.0'
    FROM (SELECT id, now() - random() * random() * interval '4 days' AS used_at FROM users) AS used;
    INSERT INTO known_states (session_id, user_id, pushed, answers, pushed_at)
    SELECT session_id, user_id, repeat('9', 60), ARRAY[repeat('9', 60)], used_at FROM refresh_tokens;
    INSERT INTO replays (id, user_id, received_at, body, size, mode, draw_mode, time_seconds, final_score, recorded_at)
    SELECT gen_random_uuid(), id, now() - random() * interval '1 year', '{}', 2, 'Classic', 'DrawOne', '1', '1',
        '2026-01-01' FROM users, generate_series(1, 2);
    INSERT INTO verdicts (replay_id, status, reason, checked_at, engine)
    SELECT id, 'refuted', 'illegal', received_at, 2 FROM replays;
    INSERT INTO admin_acts (actor_kind, actor, act, target)
    SELECT 'admin', 'ann', 'suspend', 'player' FROM generate_series(1, %(players)s / 10);
    INSERT INTO account_deletions SELECT created_at FROM users LIMIT %(players)s / 10
"""
TABLES = "users, refresh_tokens, known_states, replays, verdicts, admin_acts, account_deletions"


def counted(cursor):
    """Return the time of a count in milliseconds, and its plan."""
    cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF) {COUNT.inline(0)}")
    plan = "\n".join(line for (line,) in cursor.fetchall())
    return float(plan.partition("Execution Time: ")[2].split()[0]), plan


@pytest.mark.short
def test_count_of_a_day_takes_two_seconds(migrated_database, full, figure):
    """The first count covers 400 days, and the next one today."""
    run_sql(migrated_database, FILL, {"players": 1_000_000 if full else 500})
    run_sql(migrated_database, f"VACUUM ANALYZE {TABLES}")
    connection = connect(migrated_database)
    try:
        with connection.cursor() as cursor:
            for days, target in (("400 days", 10 * TARGET), ("today", TARGET)):
                milliseconds, plan = counted(cursor)
                figure(f"{days}: {milliseconds:.0f} ms ({target} ms)")
                assert milliseconds < 10 * target, plan
            ((active,),) = run_sql(migrated_database, "SELECT count FROM daily_numbers WHERE name = 'active'")
            assert active > 0
            cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF) {of_days.statement.inline(0)}", {"0.1": 400})
            figure(f"400 days read: {cursor.fetchall()[-1][0]}")
    finally:
        connection.close()
