"""`solisync import-original` at size: in a minute, in little memory, and after any kill."""

import json
import random
import sqlite3
import time
from contextlib import closing

import pytest

from solisync.rules import stock
from tests.fire.measured import measure
from tests.harness import original_server as there
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC
from tests.harness.payloads import IMAGES, NOW
from tests.harness.postgres import run_sql, truncate

LIMIT_MIB = 150
LIMIT_SECONDS = 60  # on a machine that has nothing else to do; of the processor's time the database takes as much
AVATAR_BYTES = 100_000
TABLES = ("users", "sync_states", "leaderboard", "avatars", "replays", "refresh_tokens", "replay_usage", "imported")
DIGEST = "SELECT count(*), md5(string_agg(md5({0}::text), '' ORDER BY md5({0}::text))) FROM {0}"


def fill(directory, players, replays, avatars):
    """Make a file and a directory of that size, with progress and replays as games write them; return both."""
    path, images = there.create(directory / "original.db"), directory / "avatars"
    images.mkdir()
    ids = [f"{number:08x}-1111-4111-8111-111111111111" for number in range(players)]
    for user_id in ids[:avatars]:
        (images / f"{user_id}.png").write_bytes(IMAGES["png"] + random.Random(user_id).randbytes(AVATAR_BYTES))
    made = [stock.player(number, NOW).progress.encode() for number in range(min(players, 500))]
    bodies = [stock.replay(str(number), NOW).decode() for number in range(min(replays, 1_000))]
    there.write(
        path,
        users=(
            there.user(user_id, f"player_{number}", avatar_url=f"/avatars/{user_id}.png" if number < avatars else None)
            for number, user_id in enumerate(ids)
        ),
        sync_state=(
            there.progress(json.loads(made[number % 500]) | {"user_id": user_id}) for number, user_id in enumerate(ids)
        ),
        leaderboard=(there.entry(user_id, best_score=number) for number, user_id in enumerate(ids)),
        replays=(
            there.replay(number, ids[number % players], replay_json=bodies[number % 1_000]) for number in range(replays)
        ),
        refresh_tokens=(there.token(number, user_id) for number, user_id in enumerate(ids)),
        analytics_events=(there.event(number, f"player_{number % players}") for number in range(replays)),
    )
    return path, images


def digest(dsn):
    """Return a digest of each table, independent of the order of its rows."""
    return {table: run_sql(dsn, DIGEST.format(table)) for table in TABLES}


@pytest.mark.limit(900)
async def test_large_import_takes_at_most_a_minute(migrated_database, place, figure):
    """The file has 10,000 players, 50,000 replays of 8 kB, 50,000 events and 1,000 avatars. It is imported twice."""
    size = (10_000, 50_000, 1_000)
    path, images = fill(place, *size)
    words = ["import-original", path, "--avatars", images]
    for what in ("at first", "again"):
        mebibytes, seconds, processor = measure(migrated_database, *words)
        took = f"{mebibytes} MiB, {seconds:.1f} s, {processor:.1f} s of the processor"
        figure(f"{size[0]:,} players, {path.stat().st_size >> 20} MiB, {what}: {took}")
        assert mebibytes < LIMIT_MIB
        assert processor < LIMIT_SECONDS / 2
        assert seconds < LIMIT_SECONDS * 10
        assert run_sql(migrated_database, "SELECT count(*) FROM replays") == [(size[1],)]


@pytest.mark.limit(900)
async def test_killed_import_can_be_repeated(migrated_database, postgres, place, launch, figure):
    """After kills at any moment, the last run leaves what a single one does."""
    path, images = fill(place, 2_000, 5_000, 200)
    words = [*SOLISYNC, "import-original", path, "--avatars", images]
    began = time.monotonic()
    assert launch(*words, DATABASE_URL=migrated_database).popen.wait(5 * PATIENCE) == 0
    seconds, expected = time.monotonic() - began, digest(migrated_database)
    truncate(migrated_database)
    kills = 40
    for number in range(1, kills + 1):
        running = launch(*words, DATABASE_URL=migrated_database)
        time.sleep(seconds * number / kills * random.uniform(0.5, 1))
        running.popen.kill()
        running.popen.wait(PATIENCE)
    last = launch(*words, DATABASE_URL=migrated_database)
    assert last.popen.wait(5 * PATIENCE) == 0, last.log
    figure(f"killed {kills} times in the {seconds:.1f} s that it takes")
    assert digest(migrated_database) == expected
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
