"""Rows of verified replays as the checks leave them, without playing any game."""

from datetime import UTC, datetime
from uuid import uuid4

from solisync.rules.boards import days_of
from tests.harness.postgres import run_sql

SEED = 1364344767969826  # of the daily challenge of 2026-04-26
NOON = datetime(2026, 4, 26, 12, tzinfo=UTC)


def verified(
    dsn,
    user_id,
    score,
    *,
    mode="Classic",
    draw_mode="DrawOne",
    seed=SEED,
    received_at=NOON,
    status="verified",
    ruleset="2026-05-19",
):
    """Insert a replay with a verdict; return the replay's id."""
    replay_id = str(uuid4())
    run_sql(
        dsn,
        "INSERT INTO replays (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, seed,"
        " recorded_at) VALUES (%s, %s, %s, '{}', 2, %s, %s, %s, '95.5', %s, '2026-04-26')",
        (replay_id, user_id, received_at, mode, draw_mode, str(score), None if seed is None else str(seed)),
    )
    check(dsn, replay_id, score, status=status, ruleset=ruleset)
    return replay_id


def check(dsn, replay_id, score, *, status="verified", ruleset="2026-05-19"):
    """Set or replace the verdict of a replay."""
    ((mode, seed, received_at),) = run_sql(
        dsn, "SELECT mode, seed, received_at FROM replays WHERE id = %s", (replay_id,)
    )
    days = days_of(mode=mode, seed=None if seed is None else int(seed), received_at=received_at)
    facts = (ruleset, 0, score, 120, days) if status == "verified" else (None, None, None, None, None)
    run_sql(
        dsn,
        "INSERT INTO verdicts (replay_id, status, ruleset, undos, score, moves, boards, checked_at, engine)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, now(), 1) ON CONFLICT (replay_id) DO UPDATE SET status = excluded.status,"
        " ruleset = excluded.ruleset, undos = excluded.undos, score = excluded.score, moves = excluded.moves,"
        " boards = excluded.boards",
        (replay_id, status, *facts),
    )
