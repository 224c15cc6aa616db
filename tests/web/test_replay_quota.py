"""The room that an account's replays take (docs/protocol.md "Replays")."""

import random

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from solisync.storage.own_replays import DELETE
from solisync.storage.replays import ROOM
from tests.harness.concurrency import at_once, gather
from tests.harness.housekeeping import make_housekeeping
from tests.harness.payloads import replay
from tests.harness.postgres import connect, truncate
from tests.harness.service import start

MIB = 2**20
CHARGE = 4_096

# the statements of version 0.1.0, unchanged
OLD_ROOM = """
    SELECT (SELECT coalesce(sum(size), 0)::bigint FROM replays WHERE user_id = $1::uuid),
        leaderboard.user_id IS NOT NULL, best_score, best_time_secs
    FROM users LEFT JOIN leaderboard ON leaderboard.user_id = id
    WHERE id = $1::uuid
"""
OLD_STORE = """
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, seed, recorded_at)
    VALUES ($1::uuid, $2::uuid, $3::timestamptz, $4::text, $5::int, $6::text, $7::text, $8::text, $9::text, $10::text,
        $11::text)
"""
OLD_DELETE = "DELETE FROM replays WHERE id = ANY ($1::text[]::uuid[]) RETURNING id::text"
FULL = {"error": "replay storage is full"}


@pytest.fixture
def small(reactor, shared_dsn):
    """A service whose accounts have room for one MiB, which 256 small replays fill."""
    truncate(shared_dsn)
    running = pytest_twisted.blockon(
        Deferred.fromCoroutine(start(reactor, shared_dsn, settings={"SOLISYNC_REPLAY_QUOTA_MIB": "1"}))
    )
    yield running
    pytest_twisted.blockon(running.service.stopService())


async def upload(server, client, body=None):
    return await server.ask("POST", "/api/replays", body=body or replay(), bearer=client.tokens.access_token)


def fill(server, user_id, count, size=2):
    """Store replays as before quotas, or as an older node does."""
    server.sql(
        "INSERT INTO replays SELECT gen_random_uuid(), %s, now(), '{}', %s, 'Zen', 'DrawOne', '1', '1', NULL,"
        " '2026-01-01' FROM generate_series(1, %s)",
        (user_id, size, count),
    )


def delete(server, ids):
    """Delete replays one at a time, as players and operators do."""
    for replay_id in ids:
        for (user_id,) in server.sql("SELECT user_id::text FROM replays WHERE id = %s", (replay_id,)):
            server.sql(DELETE.sql.replace("$1", "%s").replace("$2", "%s"), (user_id, replay_id))


def used(server):
    """Return each player's recorded use, and the sum of the charges of all stored replays."""
    known = server.sql("SELECT user_id, used_bytes FROM replay_usage ORDER BY 1")
    due = server.sql("SELECT user_id, sum(greatest(size, %s))::bigint FROM replays GROUP BY 1 ORDER BY 1", (CHARGE,))
    return known, due


async def test_replay_is_charged_at_least_4_kib(small):
    """256 small replays take a MiB; larger replays take their size."""
    client = await small.player("ann")
    me = await client.me()
    fill(small, me.id, 250)
    big = replay(moves="x" * CHARGE * 4)
    assert (await upload(small, client, big)).status == 200
    assert (await upload(small, client)).status == 200
    answer = await upload(small, client)
    assert (answer.status, answer.json) == (400, FULL)
    assert small.sql("SELECT used_bytes FROM replay_usage") == [(251 * CHARGE + len(big),)]


async def test_full_account_keeps_its_replays_and_uploads_again_below_the_quota(small):
    """Replays stored under older rules stay. Deleting a replay frees its charge."""
    client = await small.player("ann")
    fill(small, (await client.me()).id, 300)
    assert (await upload(small, client)).json == FULL
    assert small.sql("SELECT count(*) FROM replays") == [(300,)]
    assert used(small)[0] == used(small)[1]  # counted, though the upload was refused
    ids = [replay_id for (replay_id,) in small.sql("SELECT id::text FROM replays LIMIT 45")]
    delete(small, ids[:44])
    assert (await upload(small, client)).json == FULL
    delete(small, ids[44:])
    assert (await upload(small, client)).status == 200
    assert (await upload(small, client)).json == FULL


async def test_deleting_an_account_deletes_its_recorded_use(small):
    client = await small.player("ann")
    assert (await upload(small, client)).status == 200
    fill(small, (await client.me()).id, 1_000)
    await client.delete_account()
    assert used(small) == ([], [])


async def test_uploads_of_older_nodes_count(small):
    """Older nodes' statements work before and after the player's first count."""
    client = await small.player("ann")
    me = (await client.me()).id
    connection = connect(small.dsn)
    cursor = connection.cursor()
    cursor.execute(f"PREPARE old_room AS {OLD_ROOM}; PREPARE old_store AS {OLD_STORE}; PREPARE old AS {OLD_DELETE}")

    def store(size):
        cursor.execute("EXECUTE old_room(%s)", (me,))
        assert len(cursor.fetchall()) == 1
        values = ("{}", size, "Zen", "DrawOne", "1", "1", None, "2026-01-01")
        cursor.execute("EXECUTE old_store(gen_random_uuid(), %s, now(), %s, %s, %s, %s, %s, %s, %s, %s)", (me, *values))

    store(5_000)
    assert used(small)[0] == []
    assert (await upload(small, client)).status == 200
    store(2)
    store(6_000)
    cursor.execute("EXECUTE old(%s)", ([small.sql("SELECT id::text FROM replays WHERE size = 5000")[0][0]],))
    connection.close()
    assert used(small)[0] == used(small)[1] == [(me, 2 * CHARGE + 6_000)]


async def test_player_is_counted_once(small):
    """Later requests read no replays to count them, whatever their number."""
    client = await small.player("ann")
    me = (await client.me()).id
    fill(small, me, 2_000)
    room = ROOM.sql.replace("$1", "%(player)s").replace("$2", "NULL")
    explained = f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {room}"

    def plan():
        return [line for (line,) in small.sql(explained, {"player": me}) if "on replays" in line]

    assert "actual rows=2000" in plan()[0]
    assert "never executed" in plan()[0]


async def test_recorded_use_is_right_after_simultaneous_changes(small, no_deadlocks, full):
    """Uploads, deletions by operators of both versions, deletions of accounts and first counts run together."""
    stored, sent = (60, 80) if full else (24, 32)
    clients = await gather(4, lambda number: small.player(f"player_{number}"), range(4))
    for client in clients:
        fill(small, (await client.me()).id, stored)
    ids = [replay_id for (replay_id,) in small.sql("SELECT id::text FROM replays ORDER BY id")]
    chance = random.Random(7)
    chance.shuffle(ids)
    batches = [ids[start : start + 3] for start in range(0, 3 * stored, 3)]

    def store(number):
        return upload(small, clients[number % 4])

    deleting = Deferred.fromCoroutine(at_once(4, lambda batch: delete(small, batch), batches))
    answers = await gather(8, store, range(sent))
    await clients[0].delete_account()
    await deleting
    assert {answer.status for answer in answers} == {200}
    known, due = used(small)
    assert known == due
    assert len(known) == 3


async def test_replays_of_players_without_a_count_are_counted(server, reactor):
    """Housekeeping counts what older nodes stored, once after a start. Triggers keep the number with each change."""
    ann, bob = [await server.player(name) for name in ("ann", "bob")]
    for client, number in ((ann, 3), (bob, 1)):
        ids = [await client.upload_replay(replay()) for _ in range(number)]
    counts = "SELECT username, replays FROM replay_usage JOIN users ON users.id = user_id ORDER BY 1"
    assert server.sql(counts) == [("ann", 3), ("bob", 1)]
    server.sql(f"UPDATE replay_usage SET replays = NULL; DELETE FROM replay_usage WHERE used_bytes > {CHARGE}")
    rounds = make_housekeeping(server.service.parts.database, reactor)
    await rounds.prune()
    assert server.sql(counts) == [("ann", 3), ("bob", 1)]
    used = server.sql("SELECT sum(used_bytes) FROM replay_usage")
    assert used == server.sql("SELECT sum(replay_charge(size)) FROM replays")
    server.sql("UPDATE replay_usage SET replays = NULL")
    await rounds.prune()
    assert server.sql(counts) == [("ann", None), ("bob", None)]
    await ann.upload_replay(replay())
    await bob.delete_replay(ids[0])
    assert server.sql(counts) == [("ann", 4), ("bob", 0)]
