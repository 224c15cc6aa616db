"""Boards stay quick with a million verified replays of a hundred thousand players."""

import pytest

from solisync.storage import html_pages
from solisync.storage.players import leaderboard
from solisync.storage.replays import boards
from tests.harness.plans import plan
from tests.harness.postgres import run_sql

# Without triggers, which would place each replay by itself: the rows are as they would leave them.
FILL = """
    SET session_replication_role = replica;
    INSERT INTO users (id, username, password_hash, created_at)
    SELECT md5('user ' || n)::uuid, 'player' || n, 'none', now() FROM generate_series(1, %(players)s) AS n;
    INSERT INTO leaderboard (user_id, display_name, best_score, recorded_at, visible)
    SELECT id, username, 1, now(), true FROM users;
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, seed, recorded_at)
    SELECT md5('replay ' || n)::uuid, md5('user ' || 1 + n %% %(players)s)::uuid, now() - make_interval(secs => n),
        '{}', 2, 'Classic', 'DrawOne', '1', '1', n, '2026-01-01'
    FROM generate_series(1, %(replays)s) AS n;
    INSERT INTO verdicts (replay_id, status, ruleset, undos, score, moves, checked_at, engine)
    SELECT id, 'verified', '2026-05-19', 0, hashtext(id::text) & 8191, 100, now(), 1 FROM replays;
    INSERT INTO board_evidence (board, user_id, deficit, received_at, replay_id, ranked, classic)
    SELECT 'own', user_id, -score, received_at, id, false, draw_mode FROM replays JOIN verdicts ON replay_id = id
    UNION ALL
    SELECT 'deal/' || seed || '/DrawOne', user_id, -score, received_at, id, true, NULL
    FROM replays JOIN verdicts ON replay_id = id
    UNION ALL
    SELECT board, user_id, -score, received_at, id, true, NULL FROM (
        SELECT DISTINCT ON (user_id) * FROM replays JOIN verdicts ON replay_id = id
        ORDER BY user_id, score DESC, received_at, id
    ) AS best CROSS JOIN unnest(ARRAY['classic', 'classic/DrawOne', 'daily/2026-11-22']) AS board
"""
NTH = (
    "SELECT deficit, received_at, replay_id::text, user_id::text FROM board_evidence WHERE board = 'classic' AND ranked"
    " ORDER BY 1, 2, 3 OFFSET %s LIMIT 1"
)
MILLISECONDS = 5


@pytest.mark.limit(600)
async def test_board_pages_are_read_by_index(migrated_database, figure):
    """The first page, a deep one and the one around a player are tested. Ranks are counted up to 10,000."""
    players, replays = 100_000, 1_000_000
    run_sql(migrated_database, FILL, {"players": players, "replays": replays})
    run_sql(migrated_database, "CHECKPOINT")  # before the commit is on disk, no page is marked as visible to all
    for table in ("board_evidence", "leaderboard", "replays", "verdicts"):
        run_sql(migrated_database, f"VACUUM ANALYZE {table}")
    ((*deep, user),) = run_sql(migrated_database, NTH, (players * 9 // 10,))
    statements = {
        "first page": (boards.PAGE, ("classic", user, *boards.FIRST, 101)),
        "deep page": (boards.PAGE, ("classic", user, *deep, 101)),
        "around me, deep": (boards.AROUND, ("classic", user)),
        "players on it": (html_pages.day_board.statement, ("2026-11-22",)),
        "leaderboard": (leaderboard.top.statement, ()),
    }
    for name, (statement, parameters) in statements.items():
        found = plan(migrated_database, statement, *parameters)
        figure(
            f"{name} of {players:,} players, {replays:,} replays: {found.milliseconds:.2f} ms, {found.buffers} buffers"
        )
        assert "Seq Scan" not in found.text
        assert "Bitmap" not in found.text
        assert found.milliseconds < MILLISECONDS * 10
