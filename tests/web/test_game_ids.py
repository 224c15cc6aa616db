"""Repeated uploads of a game (docs/protocol.md "Replays")."""

import json
import socket
from uuid import UUID, uuid4

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import deferToThread

from tests.harness.concurrency import gather, until
from tests.harness.payloads import replay
from tests.harness.postgres import connect, lock_waiters, truncate
from tests.harness.service import start
from tests.web.calls import opt_in

CHARGE = 4_096
MIB = 2**20
GAME = "5d2c8f8e-6f0a-4c53-9b1e-3a7d0c9e4b21"
STORED = "SELECT id::text FROM replays ORDER BY received_at, id"
# version 0.1.0 stores a replay without a digest
OLD_STORE = (
    "INSERT INTO replays"
    " (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, recorded_at)"
    " VALUES (gen_random_uuid(), %s, now(), %s, %s, 'Classic', 'DrawOne', '1', '1', '2026-01-01') RETURNING id::text"
)


def game(game_id=GAME, **changes):
    """Return a replay of a game with an id."""
    return replay(game_id=game_id, **changes)


async def upload(server, client, body):
    return await server.ask("POST", "/api/replays", body=body, bearer=client.tokens.access_token)


async def id_of(server, client, body):
    """Upload a replay and return the id in the reply."""
    answer = await upload(server, client, body)
    assert answer.status == 200, answer
    return answer.json["id"]


def stored(server):
    return [replay_id for (replay_id,) in server.sql(STORED)]


def everything(server):
    """Return each row that an upload could write."""
    tables = ("replays", "replay_usage", "replay_checks", "leaderboard")
    return {table: server.sql(f"SELECT * FROM {table} ORDER BY 1") for table in tables}


async def test_repeated_upload_is_stored_once(server):
    """The reply has the stored replay's id. The repeat isn't charged, adds no check and improves no entry."""
    client = await server.player("ann")
    await opt_in(server, client, "Ann")
    first = await id_of(server, client, game())
    await client.set_listed(first, False)
    server.sql("UPDATE leaderboard SET best_score = 1")
    before = everything(server)
    for _ in range(3):
        assert await id_of(server, client, game()) == first
    assert everything(server) == before
    assert server.sql("SELECT used_bytes FROM replay_usage") == [(CHARGE,)]


@pytest.mark.parametrize("spelled", [GAME.upper(), UUID(GAME).hex, f"urn:uuid:{GAME}", f"{{{GAME}}}"])
async def test_game_id_may_have_any_spelling(server, spelled):
    """Every spelling of a UUID makes an upload repeatable.

    Replays with other spellings are other bytes, so other replays.
    """
    client = await server.player("ann")
    first = await id_of(server, client, game())
    second = await id_of(server, client, game(spelled))
    assert first != second
    assert await id_of(server, client, game(spelled)) == second
    assert stored(server) == [first, second]


@pytest.mark.parametrize("absent", [None, "", "x", 7, GAME[:-1], [GAME], {"id": GAME}, f" {GAME}"])
async def test_other_values_count_as_no_game_id(server, absent):
    """Each upload is then a new replay."""
    client = await server.player("ann")
    assert len({await id_of(server, client, game(absent)) for _ in range(2)}) == 2
    assert len({await id_of(server, client, replay()) for _ in range(2)}) == 2
    assert server.sql("SELECT count(*) FROM replays WHERE game_digest IS NULL") == [(4,)]


async def test_last_of_several_ids_counts(server):
    """All fields of a replay follow this rule, even if the key is spelled with an escape."""
    client = await server.player("ann")
    for name in ("game_id", "game\\u005fid"):
        absent = game().replace(b"}", f', "{name}": 7}}'.encode())
        assert json.loads(absent)["game_id"] == 7
        assert await id_of(server, client, absent) != await id_of(server, client, absent)
        present = replay(game_id=7).replace(b"}", f', "{name}": "{GAME}"}}'.encode())
        assert await id_of(server, client, present) == await id_of(server, client, present)


async def test_upload_of_other_bytes_is_a_new_replay(server):
    """The same game with more white space, with another score, or of another player is a new replay."""
    ann, bob = await server.player("ann"), await server.player("bob")
    bodies = [game(), game() + b" ", game(final_score=1)]
    ids = [await id_of(server, ann, body) for body in bodies]
    ids.append(await id_of(server, bob, game()))
    assert len(set(ids)) == 4
    assert [await id_of(server, ann, body) for body in bodies] == ids[:3]
    assert await id_of(server, bob, game()) == ids[3]


async def test_full_account_can_repeat_an_upload(reactor, shared_dsn):
    """A repeat needs no room in the quota."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_REPLAY_QUOTA_MIB": "1"})
    try:
        client = await running.player("ann")
        big = game(moves="x" * (MIB - 1_000))
        first = await id_of(running, client, big)
        assert (await upload(running, client, big + b" ")).headers["error-code"] == "replay_storage_full"
        assert await id_of(running, client, big) == first
    finally:
        await running.service.stopService()


async def test_deleted_replay_can_be_uploaded_again(server):
    """The replay gets a new id."""
    client = await server.player("ann")
    first = await id_of(server, client, game())
    await client.delete_replay(first)
    second = await id_of(server, client, game())
    assert second != first
    assert stored(server) == [second]


async def test_older_node_stores_a_repeated_upload_again(server):
    """An older node knows no digests. A new node returns the id that a new node stored, or of several the oldest."""
    client = await server.player("ann")
    me = (await client.me()).id
    old = [server.sql(OLD_STORE, (me, game().decode(), len(game())))[0][0]]
    first = await id_of(server, client, game())
    old += [server.sql(OLD_STORE, (me, game().decode(), len(game())))[0][0]]
    assert first not in old
    assert await id_of(server, client, game()) == first
    server.sql("UPDATE replays SET game_digest = (SELECT game_digest FROM replays WHERE id = %s)", (first,))
    assert await id_of(server, client, game()) == old[0] == stored(server)[0]


async def test_simultaneous_uploads_of_one_game_are_stored_once(nodes, no_deadlocks):
    """Twenty uploads at two nodes get the same id; the other game's replay has its own."""
    client = await nodes[0].player("ann")
    bodies = [game(), game(str(uuid4()))]
    for turn in range(5):
        bodies = [body + b"\n" for body in bodies]

        def send(number, bodies=bodies):
            return id_of(nodes[number // 2 % 2], client, bodies[number % 2])

        ids = await gather(40, send, range(40))
        assert set(ids[::2]) | set(ids[1::2]) == set(stored(nodes[0])[-2:])
        assert len(set(ids[::2])) == len(set(ids[1::2])) == 1
        assert nodes[0].sql("SELECT used_bytes FROM replay_usage") == [(2 * (turn + 1) * CHARGE,)]


async def test_upload_during_deletion_of_the_same_replay_returns_a_valid_id(nodes, no_deadlocks):
    """The id is the deleted replay's or a new one's. At most one replay is left and charged."""
    client = await nodes[0].player("ann")
    token = client.tokens.access_token
    for turn in range(15):
        body = game(str(uuid4()))
        first = await id_of(nodes[0], client, body)
        uploads = [Deferred.fromCoroutine(id_of(nodes[number % 2], client, body)) for number in range(4)]
        deletion = Deferred.fromCoroutine(nodes[turn % 2].ask("DELETE", f"/api/replays/{first}", bearer=token))
        *ids, deleted = await gatherResults([*uploads, deletion])
        assert deleted.status == 200
        left = stored(nodes[0])
        assert len(left) <= 1
        assert set(ids) <= {first, *left}
        used = nodes[0].sql("SELECT used_bytes FROM replay_usage")
        assert used == [(len(left) * CHARGE,)]
        for replay_id in left:
            await client.delete_replay(replay_id)


async def test_client_that_hung_up_can_repeat_the_upload(nodes, reactor):
    """The first upload may still wait in the database: it is stored once, and the repeat returns its id."""
    here, there = nodes
    client = await here.player("ann")
    body = game()
    head = (
        f"POST /api/replays HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {client.tokens.access_token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    holder = connect(here.dsn)
    try:
        holder.cursor().execute("BEGIN; SELECT FROM users FOR UPDATE")
        with socket.create_connection(("127.0.0.1", here.port)) as connection:
            await deferToThread(connection.sendall, head.encode() + body)
            await until(reactor, lambda: lock_waiters(here.dsn))
        again = Deferred.fromCoroutine(id_of(there, client, body))
        await until(reactor, lambda: len(lock_waiters(here.dsn)) == 2)
        holder.cursor().execute("ROLLBACK")
        answered = await again
    finally:
        holder.close()
    assert await id_of(here, client, body) == answered
    assert stored(here) == [answered]
