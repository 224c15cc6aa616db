"""The room that an account's replays take (docs/protocol.md "Replays")."""

import random

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from solisync.postgres.migrate import load_migrations, migrate
from solisync.storage.replays.own_replays import delete as delete_own
from tests.harness.concurrency import at_once, gather
from tests.harness.payloads import replay
from tests.harness.players import players as new_players
from tests.harness.postgres import run_sql, truncate
from tests.harness.service import start

MIB = 2**20
CHARGE = 4_096

FILL = (
    "INSERT INTO replays SELECT gen_random_uuid(), %s, now(), '{}', %s, 'Zen', 'DrawOne', '1', '1', NULL,"
    " '2026-01-01' FROM generate_series(1, %s)"
)
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
    server.sql(FILL, (user_id, size, count))


def delete(server, ids):
    """Delete replays one at a time, as players and operators do."""
    for replay_id in ids:
        for (user_id,) in server.sql("SELECT user_id::text FROM replays WHERE id = %s", (replay_id,)):
            server.sql(delete_own.statement.sql.replace("$1", "%s").replace("$2", "%s"), (user_id, replay_id))


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


def test_uploads_of_a_node_of_1_1_0_count(server):
    """The node itself adds the row of a player, without the number of replays."""
    [(ann, *_)] = new_players(server.dsn, 1)
    server.sql("INSERT INTO replay_usage (user_id, used_bytes) VALUES (%s, 0)", (ann,))
    fill(server, ann, 2)
    fill(server, ann, 1, size=6_000)
    server.sql("DELETE FROM replays WHERE id = (SELECT id FROM replays WHERE size = 2 LIMIT 1)")
    assert counts(server.dsn) == [(ann, 2)]


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


async def test_upgrade_counts_the_replays_of_all_players(reactor, empty_database):
    """1.1.0 counted nothing for a player without uploads since 1.0.0; such a row has no number, or doesn't exist."""
    steps = load_migrations()
    await migrate(reactor, empty_database, [step for step in steps if step.number < 59])
    players = [player for player, *_ in new_players(empty_database, 4)]
    for player, count in zip(players, (3, 150, 2, 0), strict=True):
        run_sql(empty_database, FILL, (player, 2, count))
    run_sql(
        empty_database, "INSERT INTO replay_usage (user_id, used_bytes) SELECT unnest(%s::uuid[]), 0", (players[2:],)
    )
    run_sql(empty_database, "UPDATE replay_usage SET used_bytes = 2 * 4096 WHERE user_id = %s", (players[2],))
    await migrate(reactor, empty_database, steps)
    assert counts(empty_database) == [*zip(players, (3, 150, 2, 0), strict=True)]


def test_join_by_a_node_of_1_1_0_counts_the_replays_that_it_moves(server):
    """Its statement changes only a row that exists."""
    (ann, *_), (guest, *_) = new_players(server.dsn, 2)
    fill(server, guest, 3)
    server.sql(
        "WITH moved AS (UPDATE replays SET user_id = %s WHERE user_id = %s RETURNING size), charged AS ("
        " UPDATE replay_usage SET replays = coalesce(replays, 0) + (SELECT count(*) FROM moved) WHERE user_id = %s"
        ") INSERT INTO joined_guests (guest_id, user_id) VALUES (%s, %s)",
        (ann, guest, ann, guest, ann),
    )
    server.sql("DELETE FROM users WHERE id = %s", (guest,))
    assert counts(server.dsn) == [(ann, 3)]
    fill(server, ann, 1)
    assert counts(server.dsn) == [(ann, 4)]


def counts(dsn):
    """Return (player, number of replays), if the stored numbers and bytes are right."""
    rows = run_sql(
        dsn,
        "SELECT username, id::text, coalesce(replays, 0), coalesce(used_bytes, 0)"
        " FROM users LEFT JOIN replay_usage ON user_id = id ORDER BY username",
    )
    stored = run_sql(
        dsn,
        "SELECT username, users.id::text, count(replays.id)::int,"
        " coalesce(sum(replay_charge(size)) FILTER (WHERE size IS NOT NULL), 0)"
        " FROM users LEFT JOIN replays ON user_id = users.id GROUP BY users.id ORDER BY username",
    )
    assert rows == stored
    return [(player, number) for _, player, number, _ in rows]
