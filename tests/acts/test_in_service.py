"""Acts on connections of the service, where every statement is prepared (solisync.storage)."""

from contextlib import closing
from datetime import UTC, datetime
from unittest.mock import ANY

import pytest
from msgspec.json import encode
from twisted.internet.defer import Deferred, DeferredList

from solisync.acts import ACTS, players, profiles, replays
from solisync.acts.act import Acting
from solisync.errors import NotFound
from solisync.events.notices import BoardsChanged, ReplayStored, SessionsEnded
from solisync.rules.documents import read_pushed
from solisync.storage.operators.acts import Actor
from tests.harness.concurrency import until
from tests.harness.footprint import search
from tests.harness.payloads import IMAGES, progress_of, replay
from tests.harness.postgres import connect, lock_waiters

# Each act with all its arguments and its notices, in an order in which each act changes something.
UNKNOWN = "00000000-0000-4000-8000-000000000000"
EXPORTED = read_pushed(encode(progress_of())).document
EACH = (
    (profiles.name, {"display_name": "Anna"}, "board"),
    (profiles.hide, {"lock": True}, "board"),
    (profiles.show, {}, "board"),
    (profiles.remove_avatar, {}, ""),
    (players.unlock, {}, ""),
    (players.lock, {}, ""),
    (players.end_sessions, {"access": True}, "ended"),
    (players.suspend, {"message": "stop"}, "board, ended"),
    (players.suspend, {"message": "stop it"}, ""),
    (profiles.hide, {}, ""),
    (players.unsuspend, {}, ""),
    (profiles.show, {}, "board"),
    (players.suspend, {}, "board, ended"),
    (players.unsuspend, {}, "board"),
    (players.link, {"token_digest": b"x" * 32, "password_hash": "$2b$04$" + "x" * 53}, "ended"),
    (players.restore, {"exported": EXPORTED, "games": [], "now": datetime.now(UTC)}, "progress"),
    (replays.unlist, {}, ""),
    (replays.list_again, {}, ""),
    (replays.check, {"again": True}, "queued"),
    (replays.delete, {}, ""),
    (players.rename, {"username": "anna"}, ""),
    (players.delete, {}, "board, ended"),
)

AGAIN = {players.link, replays.check}  # these change something again
GONE = {players.delete, replays.delete}  # these delete their target


@pytest.fixture
def told():
    """All notices so far."""
    return []


@pytest.fixture
def acting(server, open_database, told):
    """Acts as the service performs them."""
    publish = lambda *notices: told.extend(notices)  # noqa: E731
    return Acting(database=open_database(), publish=publish, by=Actor("admin", "annie"))


async def test_service_performs_every_act_once(server, acting, told):
    """Each act changes something and notifies the processes.

    A repetition does neither, and leaves no record. No record names a deleted player.
    """
    assert {act for act, *_ in EACH} == {*ACTS}
    client = await server.player("ann")
    user_id = (await client.me()).id
    await client.opt_in("ann")
    await client.upload_avatar(IMAGES["png"], "image/png")
    replay_id = await client.upload_replay(replay())
    notices = {
        "board": BoardsChanged(),
        "ended": SessionsEnded(user_id),
        "queued": ReplayStored(),
        "progress": ANY,
    }
    for act, given, tells in EACH:
        target = user_id if act.target == "player" else replay_id
        told.clear()
        assert (await acting.perform(act, target, **given)).changed, act.name
        assert told == [notices[what] for what in tells.split(", ") if what], act.name
        told.clear()
        if act in GONE:
            with pytest.raises(NotFound):
                await acting.perform(act, target, **given)
        elif act not in AGAIN:
            assert not (await acting.perform(act, target, **given)).changed, act.name
        if act not in AGAIN:
            assert told == [], act.name
    assert server.sql("SELECT array_agg(act ORDER BY id) FROM admin_acts") == [([act.name for act, *_ in EACH],)]
    assert search(server.dsn, (user_id, replay_id, "ann", "Anna")) == {("admin_acts", "actor")}


@pytest.mark.parametrize("target", [UNKNOWN, "nonsense"])
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
async def test_act_without_a_target_is_not_found(server, acting, act, target):
    """The act fails with any arguments, and leaves no record."""
    given = next(given for each, given, _ in EACH if each is act)
    with pytest.raises(NotFound) as error:
        await acting.perform(act, target, **given)
    assert error.value.code == {"player": "player_not_found", "replay": "replay_not_found"}[act.target]
    assert server.sql("SELECT count(*) FROM admin_acts") == [(0,)]


async def behind_a_lock(reactor, server, replay_id, work, *statements):
    """Run `work` while a transaction with these statements has locked the replay's player; return the outcomes."""
    with closing(connect(server.dsn)) as connection, connection.cursor() as cursor:
        connection.autocommit = False
        cursor.execute(
            "SELECT FROM users WHERE id = (SELECT user_id FROM replays WHERE id = %s) FOR UPDATE", [replay_id]
        )
        running = DeferredList([Deferred.fromCoroutine(each) for each in work], consumeErrors=True)
        await until(reactor, lambda: len(lock_waiters(server.dsn)) == len(work))
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
    return await running


async def test_replay_that_two_operators_delete_is_deleted_and_recorded_once(server, reactor, open_database):
    """The second operator gets a 404, and the record has no act that did nothing."""
    ann = await server.player("ann")
    replay_id = await ann.upload_replay(replay())
    acting = Acting(database=open_database(size=2), publish=lambda *notices: None, by=Actor("admin", "annie"))
    deletions = [acting.perform(replays.delete, replay_id) for _ in range(2)]
    outcomes = await behind_a_lock(reactor, server, replay_id, deletions)
    assert sorted(succeeded for succeeded, _ in outcomes) == [False, True]
    assert [failure.value.code for succeeded, failure in outcomes if not succeeded] == ["replay_not_found"]
    assert server.sql("SELECT act FROM admin_acts") == [("delete_replay",)]


async def test_act_on_a_replay_follows_it_when_a_player_joins_the_guest(server, reactor, acting):
    """The replay gets another owner, and the former one is deleted, while the act waits."""
    guest = server.client()
    await server.player("ann")
    await guest.guest()
    replay_id = await guest.upload_replay(replay())
    joined = (
        "UPDATE replays SET user_id = (SELECT id FROM users WHERE username = 'ann')",
        "DELETE FROM users WHERE username <> 'ann'",
    )
    ((succeeded, _),) = await behind_a_lock(
        reactor, server, replay_id, [acting.perform(replays.unlist, replay_id)], *joined
    )
    assert succeeded
    assert server.sql(
        "SELECT act, username FROM admin_notes JOIN admin_acts ON id = act_id JOIN users ON user_id = users.id"
    ) == [("unlist", "ann")]
