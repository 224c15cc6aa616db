"""Suspending, hiding and deleting the largest accounts: docs/moderation.md "Large accounts"."""

import time

import pytest

from solisync.acts import players, profiles
from tests.harness.acting import operator
from tests.harness.players import players as new_players
from tests.harness.postgres import run_sql

FILL = """
    SET session_replication_role = replica;
    INSERT INTO leaderboard (user_id, display_name, best_score, recorded_at, visible)
    VALUES (%(player)s, 'Ann', 1, now(), true);
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, seed, recorded_at)
    SELECT gen_random_uuid(), %(player)s, now() - make_interval(secs => n), '{}', 2, 'Classic', 'DrawOne', '1', '1',
        n, '2026-01-01'
    FROM generate_series(1, %(count)s) AS n;
    INSERT INTO verdicts (replay_id, status, ruleset, undos, score, moves, checked_at, engine)
    SELECT id, 'verified', '2026-05-19', 0, hashtext(id::text) & 511, 100, now(), 1 FROM replays;
    INSERT INTO board_evidence (board, user_id, deficit, received_at, replay_id, ranked, classic)
    SELECT 'own', user_id, -score, received_at, id, false, draw_mode FROM replays JOIN verdicts ON replay_id = id
    UNION ALL
    SELECT 'deal/' || seed || '/DrawOne', user_id, -score, received_at, id, true, NULL
    FROM replays JOIN verdicts ON replay_id = id;
    INSERT INTO public_replays SELECT received_at, id, true FROM replays;
    INSERT INTO replay_usage (user_id, used_bytes, replays) VALUES (%(player)s, 4096 * %(count)s, %(count)s)
"""
SECONDS = 10  # for an account of the largest size that the quota and a join allow


@pytest.mark.limit(600)
@pytest.mark.parametrize("count", [17_408, 240_000])
async def test_operators_act_on_the_largest_accounts(migrated_database, reactor, figure, count):
    """The larger one needs its batches; each of them is short."""
    dsn = migrated_database
    [(player, *_)] = new_players(dsn, 1)
    run_sql(dsn, FILL, {"player": player, "count": count})
    for table in ("board_evidence", "replays", "verdicts", "public_replays"):
        run_sql(dsn, f"VACUUM ANALYZE {table}")
    async with operator(reactor, dsn, settling=True) as acting:
        for act in (players.suspend, players.unsuspend, profiles.hide, profiles.show, players.delete):
            began = time.monotonic()
            await acting.perform(act, player)
            took = time.monotonic() - began
            figure(f"{act.name} an account of {count:,} replays: {took:.2f} s")
            assert count > 17_408 or took < SECONDS * 10
    assert run_sql(dsn, "SELECT count(*) FROM replays") == [(0,)]
