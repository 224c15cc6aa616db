"""Acts as the service, the console and the command line perform them, with every statement prepared as there."""

from contextlib import closing
from unittest.mock import ANY

import pytest
from twisted.internet.defer import Deferred, DeferredList

from solisync.acts import ACTS, players, replays
from solisync.acts.act import Acting, Why
from solisync.errors import NotFound
from solisync.events.notices import BoardsChanged, ReplayStored, SessionsEnded
from solisync.storage.operators.acts import Actor
from tests.acts.each import AGAIN, EACH, GONE, export_of
from tests.harness.concurrency import until
from tests.harness.console import Console
from tests.harness.footprint import search
from tests.harness.payloads import IMAGES, replay
from tests.harness.postgres import connect, lock_waiters

WHY = {"reason": "other", "note": "seen by hand"}
RECORDED = "SELECT count(*) FROM admin_acts"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def told():
    """All notices so far."""
    return []


@pytest.fixture
def acting(server, open_database, told):
    """Acts as the service performs them."""
    publish = lambda *notices: told.extend(notices)  # noqa: E731
    return Acting(database=open_database(), publish=publish, by=Actor("admin", "annie"), why=Why(**WHY))


async def in_service(fixture, paths):
    """Return a function that performs an act as the service does, and returns whether it changed something."""
    acting, told = fixture("acting"), fixture("told")
    notices = {
        "board": BoardsChanged(),
        "ended": SessionsEnded(paths["user_id"]),
        "queued": ReplayStored(),
        "progress": ANY,
    }

    async def perform(each, *, again):
        told.clear()
        try:
            done = await acting.perform(
                each.act, paths[f"{'user' if each.act.target == 'player' else 'replay'}_id"], **each.given
            )
        except NotFound as error:
            assert (told, again) == ([], True)
            return error.code
        assert told == [notices[what] for what in each.notices.split(", ") if what and done.changed], each
        return done.changed

    return perform, ("admin", "annie", "other", None, False)


async def in_console(fixture, paths):
    """Return a function that performs an act by a request of the console, and the actor of the record."""
    console = Console(fixture("server").service.admin_address.port, fixture("administrate"))
    await console.sign_in("root")

    async def perform(each, *, again):
        method, path, body = each.request
        answer = await console.ask(method, path.format(**paths), WHY | body)
        return answer.headers.get("error-code") or answer.json["changed"]

    return perform, ("admin", "root", "other", console.address, True)


async def on_the_command_line(fixture, paths):
    """Return a function that performs an act by a command, and checks what that prints, and the actor of the record."""
    server, administrate = fixture("server"), fixture("administrate")
    paths["export"] = fixture("tmp_path") / "export.json"
    paths["export"].write_text(export_of(paths["user_id"]), "utf-8")

    async def perform(each, *, again):
        words = [*each.command.format(**paths).split(), "--reason", WHY["reason"], "--note", WHY["note"]]
        before = server.sql(RECORDED)
        if again and each.act in GONE:
            await administrate(*words, fails=NotFound)
            return GONE[each.act]
        assert each.says[again] in await administrate(*words, SUDO_USER="operator"), each
        return server.sql(RECORDED) != before

    return perform, ("shell", "operator", "other", None, False)


@pytest.mark.parametrize("interface", [in_service, in_console, on_the_command_line])
async def test_every_act_changes_something_once(server, request, interface):
    """A repetition changes nothing, notifies no process and leaves no record. No record names a deleted player."""
    assert {each.act for each in EACH} == {*ACTS}
    client = await server.player("ann")
    user_id = (await client.me()).id
    await client.opt_in("ann")
    await client.upload_avatar(IMAGES["png"], "image/png")
    replay_id = await client.upload_replay(replay())
    paths = {
        "user_id": user_id,
        "replay_id": replay_id,
        "player": f"/players/{user_id}",
        "replay": f"/replays/{replay_id}",
    }
    perform, actor = await interface(request.getfixturevalue, paths)
    acts = [each for each in EACH if each.request or interface is not in_console]
    for each in acts:
        if each.act is players.delete:  # with which the notes end
            assert server.sql("SELECT DISTINCT note FROM admin_notes") == [(WHY["note"],)]
        assert await perform(each, again=False) is True, each
        if each.act in AGAIN:
            await perform(each, again=True)
        else:
            ((count,),) = server.sql(RECORDED)
            assert await perform(each, again=True) == GONE.get(each.act, False), each
            assert server.sql(RECORDED) == [(count,)], each
    columns = "actor_kind, actor, reason, client, request_id IS NOT NULL"
    assert server.sql(f"SELECT DISTINCT {columns} FROM admin_acts") == [actor]
    recorded = [each.act.name for each in acts for _ in range(1 + (each.act in AGAIN))]
    assert server.sql("SELECT array_agg(act ORDER BY id) FROM admin_acts") == [(recorded,)]
    assert search(server.dsn, (user_id, replay_id, "ann", "Anna")) <= {("admin_acts", "actor")}


@pytest.mark.parametrize("target", [UNKNOWN, "nonsense"])
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
async def test_act_without_a_target_is_not_found(server, acting, act, target):
    """The act fails with any arguments, and leaves no record."""
    given = next(each.given for each in EACH if each.act is act)
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
