"""`make bench-scale`: the constants of docs/scaling.md: bytes of a row in each table, and pushes a second.

Replays are won games, checked by solisync's own engine; their verdicts are stored as a checker would.
"""

import argparse
import gzip
import json
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg2
from psycopg2.extras import execute_values

from solisync.checking.messages import compressed_timeline
from solisync.housekeeping import BATCH
from solisync.klondike import ENGINE_VERSION, Verdict, check
from solisync.rules.boards import boards_of, days_of
from solisync.storage import analytics

from . import model
from .cells import load_cell, rate_cell
from .report import Rows, say, table
from .stage import Stage
from .world import World, identity
from .yardsticks import pgbench

GAMES = Path(__file__).parent.parent / "tests/klondike/vectors"
WORKERS = (1, 2, 4)
EVENTS = 10  # of each player
EVENT = '{"mode":"Classic","draw_mode":"DrawOne","duration_seconds":312,"moves":148,"outcome":"won"}'
AVATAR_BYTES = 20_000


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--players", type=int, default=1_000)
    parser.add_argument("--replays", type=int, default=10, help="of each player")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each cell is measured in each round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    world = World(players=arguments.players, document_bytes=3_000, replays=1, replay_bytes=1_000)
    with Stage(world) as stage:
        owner = stage.open(workers=max(WORKERS))
        say("storing what players leave in a year")
        model.ROW_BYTES |= sizes(stage.dsn, world, arguments.replays)
        print(model.sizes_table(), model.needs_table(), sep="\n\n")
        print(f"\nevents deleted by housekeeping: {pruned(stage.dsn):,.0f} a second\n")
        generator = stage.generator()
        servers = {workers: stage.solisync(SOLISYNC_WORKERS=workers) for workers in WORKERS[:-1]}
        servers[WORKERS[-1]] = owner
        cells = [
            load_cell(generator, f"{workers} workers", server, "push", stage.database_pids)
            for workers, server in servers.items()
        ]
        program = stage.program("pgbench")
        cells.append(rate_cell("pgbench", "push", partial(pgbench, program, stage.socket_dir, world, "push")))
        rows = Rows()
        rows.measure(cells, arguments.rounds, arguments.seconds)
        print(table(rows.medians()))


def sizes(dsn: str, world: World, replays: int) -> dict[str, float]:
    """Store what the players of a world leave behind, and return the bytes of a row in each table, all included."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        players = [identity("user", number) for number in range(world.players)]
        games = _games()
        for first in range(0, len(players), 50):
            _store_replays(cursor, players[first : first + 50], replays, games)
        _store_the_rest(cursor, players)
        cursor.execute("VACUUM (ANALYZE)")
        found = {}
        for name in sorted({*model.ROWS, *model.ROWS_A_YEAR}):
            cursor.execute(f"SELECT pg_total_relation_size('{name}')::float8 / nullif(count(*), 0) FROM {name}")
            found[name] = cursor.fetchone()[0]
    connection.close()
    return found


Game = tuple[str, dict[str, Any], Verdict, bytes]


def pruned(dsn: str) -> float:
    """Delete all analytics events in the batches of housekeeping; returns how many a second."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    count: int = 0
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(analytics.PRUNE.preparation)
        while True:
            cursor.execute(analytics.PRUNE.execution, (datetime.now(UTC), 0, BATCH))
            deleted: int = cursor.rowcount
            count += deleted
            if deleted < BATCH:
                return count / (time.monotonic() - began)


def _games() -> list[Game]:
    """Won games: the replay as it is uploaded, its fields, the verdict, and the digest of its timeline."""
    games = []
    for path in sorted(GAMES.glob("wins_*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                replay = json.loads(line)["replay"]
                body = json.dumps(replay, separators=(",", ":"))
                verdict = check(body.encode())
                timeline = compressed_timeline(body.encode(), verdict)
                assert timeline is not None
                games.append((body, replay, verdict, sha256(timeline).digest()))
    return games


_REPLAYS = """
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, seed, recorded_at)
    VALUES %s
"""
_VERDICTS = """
    INSERT INTO verdicts
        (replay_id, status, ruleset, undos, score, moves, checked_at, engine, undo_places, timeline_digest, boards)
    VALUES %s
"""


def _store_replays(cursor: Any, players: Sequence[str], count: int, games: Sequence[Game]) -> None:
    now, chance = datetime.now(UTC), random.Random(players[0])
    uploaded, checked = [], []
    for player in players:
        for _ in range(count):
            body, replay, verdict, digest = chance.choice(games)
            mode = replay["mode"] if isinstance(replay["mode"], str) else "Difficulty"
            # deals of games are each somebody's own, but for that of the day
            seed, received_at = chance.randrange(2**64), now - timedelta(seconds=chance.randrange(365 * 86_400))
            name, score = str(uuid4()), int(replay["final_score"])
            shown = (mode, replay["draw_mode"], str(score), str(replay["time_seconds"]), str(seed), "2026-01-01")
            uploaded.append((name, player, received_at, body, len(body), *shown))
            boards = boards_of(mode=mode, draw_mode=replay["draw_mode"], seed=seed, received_at=received_at)
            facts = ("2026-05-19", verdict.undos, score, len(replay["moves"]), now, ENGINE_VERSION)
            places = list(verdict.undo_places) or None
            checked.append((name, "verified", *facts, places, digest, days_of(boards)))
    execute_values(cursor, _REPLAYS, uploaded)
    cursor.execute("DELETE FROM replay_checks")
    execute_values(cursor, _VERDICTS, checked, template=f"({'%s, ' * 8}%s::smallint[], %s, %s)")


def _store_the_rest(cursor: Any, players: Sequence[str]) -> None:
    execute_values(
        cursor,
        "INSERT INTO avatars (user_id, image) VALUES %s",
        [(player, random.randbytes(AVATAR_BYTES)) for player in players],
    )
    cursor.execute(
        """
        INSERT INTO replay_usage (user_id, used_bytes) SELECT id, 1048576 FROM users ON CONFLICT DO NOTHING;
        INSERT INTO analytics_names (name, seen_on) SELECT id::text, current_date FROM users;
        INSERT INTO analytics_events (id, session_id, name_id, event_type, payload, client_time, received_at)
        SELECT gen_random_uuid(), gen_random_uuid()::text, id, 'game_finished', %s, now(), now()
        FROM analytics_names CROSS JOIN generate_series(1, %s)
        """,
        (EVENT, EVENTS),
    )


if __name__ == "__main__":
    main()
