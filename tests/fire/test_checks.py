"""Checks of replays while processes and servers are killed, and with long queues."""

import json
import os
import random
import signal
import threading
import time

import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.postgres.statement import Statement
from solisync.storage.replays import checks
from tests.checking.uploads import checkers, encoded, endless, game, refuted
from tests.fire.raw import Watch, head, running
from tests.fire.servers import is_back
from tests.harness.concurrency import until, wait_for
from tests.harness.constants import PATIENCE
from tests.harness.http_requests import Connection
from tests.harness.plans import plan
from tests.harness.players import players
from tests.harness.postgres import run_sql, truncate
from tests.harness.processes import alive, postmaster, workers
from tests.harness.service import ready

QUEUE = 1_000_000
# Half of the replays wait for a search, of a hundred thousand players; and each of these had a search in the last hour.
FILL = """
    SET session_replication_role = replica;
    INSERT INTO users (id, username, password_hash, created_at)
    SELECT md5('user ' || n)::uuid, 'player' || n, 'none', now() FROM generate_series(1, %(count)s / 10) AS n;
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, recorded_at)
    SELECT md5('replay ' || n)::uuid, md5('user ' || 1 + n %% (%(count)s / 10))::uuid, now(), '{}', 2, 'Classic',
        'DrawOne', '1', '1', '2026-01-01'
    FROM generate_series(1, %(count)s) AS n;
    INSERT INTO replay_checks (replay_id, user_id, received_at, search, ahead)
    SELECT id, user_id, received_at, hashtext(id::text) %% 2 = 0, hashtext(id::text) & 255 FROM replays;
    INSERT INTO recent_searches SELECT id, now() - interval '30 min' FROM users
"""
AHEAD = Statement("ahead", "SELECT checks_ahead(id, true, now()) FROM (SELECT md5('user 7')::uuid AS id) AS player")
MILLISECONDS = 5

TARGET_SECONDS = 0.01  # of /health at the 99th percentile, while the queue is full
BUSY = 10  # how many times slower a busy machine may be


class Uploading(threading.Thread):
    """An upload of many replays, each repeated until it is acknowledged; one without an answer may be stored too."""

    def __init__(self, port, token, bodies):
        super().__init__(daemon=True)
        self.acknowledged = []
        self._port, self._token, self._bodies = port, token, bodies
        self.start()

    def run(self):
        for body in self._bodies:
            while not self._upload(body):
                time.sleep(0.05)

    def _upload(self, body):
        connection = Connection(self._port())
        try:
            answer = connection.ask("POST", "/api/replays", body, bearer=self._token)
        except OSError:
            return False
        except Exception:  # half an answer
            return False
        finally:
            connection.close()
        if answer.status != 200:
            return False
        self.acknowledged.append(json.loads(answer.content)["id"])
        return True


def bodies(count):
    """Return replays of all kinds; a tenth needs a search."""
    kinds = [game(0), game(1), refuted(), game(2), game(3)]
    return [encoded(game(number % 4, undo=True) if number % 10 == 0 else kinds[number % 5]) for number in range(count)]


@pytest.mark.limit(600)
async def test_each_upload_has_one_verdict_despite_kills(serve, reactor, durable, figure):
    """Checkers, workers, whole services and PostgreSQL are killed during the uploads."""
    chance = random.Random(20261122)
    settings = {"SOLISYNC_WORKERS": "2", "SOLISYNC_CHECKERS": "2"}
    current = [await serve(durable.dsn, **settings)]
    ((_, _, token),) = players(durable.dsn, 1)
    uploads = 500
    uploading = [Uploading(lambda: current[0].port, token, bodies(uploads // 4)) for _ in range(4)]
    kills = dict.fromkeys(("checker", "worker", "service", "PostgreSQL"), 0)

    def kill(pids):
        for pid in sorted(pids):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
                return 1
        return 0

    while any(thread.is_alive() for thread in uploading) or min(kills.values()) < 5:
        what = min(kills, key=kills.get)
        if what == "checker":
            kills[what] += kill({pid for worker in workers(current[0]) for pid in checkers(worker)})
        elif what == "worker":
            kills[what] += kill(workers(current[0]))
        elif what == "PostgreSQL":
            old = postmaster(durable.data_dir)
            os.kill(old, signal.SIGKILL)
            await deferToThread(wait_for, lambda old=old: is_back(durable, old))
            kills[what] += 1
        else:
            current[0].stop(signal.SIGKILL)
            current[0] = await serve(durable.dsn, **settings)
            kills[what] += 1
        await deferLater(reactor, chance.uniform(0.2, 1.0))
    await ready(reactor, current[0].client())
    acknowledged = {replay_id for thread in uploading for replay_id in thread.acknowledged}
    assert len(acknowledged) == uploads // 4 * 4

    await until(reactor, lambda: run_sql(durable.dsn, "SELECT 1 FROM replay_checks") == [], 5 * PATIENCE)
    stored = {str(row[0]) for row in run_sql(durable.dsn, "SELECT id FROM replays")}
    found = dict(run_sql(durable.dsn, "SELECT replay_id::text, status FROM verdicts"))
    assert acknowledged <= stored
    assert set(found) == stored
    counted = {status: list(found.values()).count(status) for status in set(found.values())}
    figure(f"{len(acknowledged)} uploads acknowledged, {len(stored)} stored; killed: {kills}; verdicts: {counted}")
    assert current[0].stop() == 0


async def test_checks_do_not_slow_requests_down(serve, reactor, shared_dsn, figure):
    """The queues are full of hard searches and literal checks, and /health answers as usual."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_CHECKERS="2")
    ((ann, _, _), (bob, _, _)) = players(shared_dsn, 2)
    seconds = 20
    request = head("GET", "/health")
    before = Watch(process, {"before": request})
    with running(before):
        await deferLater(reactor, seconds)
    for player, body, count in ((ann, endless(), 20), (bob, game(), 20_000)):
        process.sql(
            "INSERT INTO replays SELECT gen_random_uuid(), %s, now(), %s, %s, 'Zen', 'DrawOne', '1', '1', NULL,"
            " '2026-01-01' FROM generate_series(1, %s)",
            (player, encoded(body).decode(), len(encoded(body)), count),
        )
    await until(reactor, lambda: process.sql("SELECT 1 FROM verdicts LIMIT 1"), 2 * PATIENCE)
    watch = Watch(process, {"full": request})
    done = process.sql("SELECT count(*) FROM verdicts")[0][0]
    with running(watch):
        await deferLater(reactor, seconds)
    done = process.sql("SELECT count(*) FROM verdicts")[0][0] - done
    left = process.sql("SELECT count(*) FROM replay_checks")[0][0]
    figure(f"{done} literal checks in {seconds} s, and searches; {left} wait; /health: {before}; {watch}")
    assert left > 0
    assert watch.p99("full") < TARGET_SECONDS * BUSY
    assert process.stop() == 0


@pytest.mark.limit(600)
async def test_claim_is_quick_in_a_long_queue(migrated_database, figure):
    """Finding the place of a replay among the searches is quick too, as is pruning counted searches."""
    run_sql(migrated_database, FILL, {"count": QUEUE})
    for table in ("replay_checks", "recent_searches", "replays", "users"):
        run_sql(migrated_database, f"VACUUM ANALYZE {table}")
    statements = {
        "claim of a search": (checks.claim.statement, (True, 30)),
        "claim of a literal check": (checks.claim.statement, (False, 30)),
        "place among the searches": (AHEAD, ()),
        "pruning": (checks.prune_searches.statement, (1_000,)),
    }
    for name, (statement, parameters) in statements.items():
        found = plan(migrated_database, statement, *parameters)
        figure(f"{name} of {QUEUE:,}: {found.milliseconds:.2f} ms, {found.buffers} buffers")
        assert "Seq Scan" not in found.text
        assert found.milliseconds < MILLISECONDS * 10
