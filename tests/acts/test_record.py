"""The record of acts: docs/moderation.md "The record of acts"."""

from dataclasses import replace

import psycopg2
import pytest
from twisted.internet.defer import Deferred

from solisync.acts import players, profiles
from solisync.acts import replays as on_replays
from solisync.acts.act import Act, Done, Why
from solisync.errors import BadRequest, DatabaseError, NotFound
from solisync.events.notices import SessionsEnded
from tests.harness.concurrency import until
from tests.harness.payloads import replay
from tests.harness.postgres import connect, lock_waiters


async def test_an_act_is_recorded_with_who_and_why(server, acting, recorded):
    """The name of the act, the actor, reason and note, and what it has changed."""
    me = await (await server.player("ann")).me()
    assert (await acting.perform(players.rename, me.id, username="anna")).changed
    assert recorded() == [("shell", "ann_the_operator", "rename", "player", "spam", "seen by hand", "ann", "anna")]
    assert recorded("user_id::text, replay_id") == [(me.id, None)]


async def test_a_username_is_trimmed_as_at_registration(server, acting):
    """Else its player could not log in by it."""
    ann = await server.player("ann")
    assert (await acting.perform(players.rename, (await ann.me()).id, username=" anna ")).after == "anna"
    assert (await ann.me()).username == "anna"
    assert not (await acting.perform(players.rename, (await ann.me()).id, username="anna ")).changed


async def test_a_deletion_is_in_the_audit_trail_as_such(server, acting, audited):
    """Whoever deletes an account, the line `account deleted` names it."""
    player = (await (await server.player("ann")).me()).id
    await acting.perform(players.delete, player)
    assert [event["event"] for event in audited] == ["register", "act", "account deleted"]


async def test_expired_sessions_do_not_count_as_ended(server, acting):
    """The result is how many players notice."""
    player = (await (await server.player("ann")).me()).id
    server.sql("UPDATE refresh_tokens SET expires_at = now()")
    done = await acting.perform(players.end_sessions, player)
    assert (done.changed, done.result) == (False, 0)


async def test_an_act_on_an_entry_that_is_not_there_says_so(server, acting):
    """With a code of its own, as the player is there."""
    player = (await (await server.player("ann")).me()).id
    for act, given in ((profiles.hide, {}), (profiles.show, {}), (profiles.name, {"display_name": "Ann"})):
        with pytest.raises(NotFound) as error:
            await acting.perform(act, player, **given)
        assert error.value.code == "entry_not_found"


async def test_an_act_is_told_though_its_caller_has_gone(reactor, server, acting, audited):
    """A hang-up while the act commits: streams hear of it, and the audit trail has its line."""
    player, notices = (await (await server.player("ann")).me()).id, []
    performing = replace(acting, publish=lambda *told: notices.extend(told))
    locking = connect(server.dsn)
    locking.cursor().execute("BEGIN; SELECT FROM users WHERE id = %s FOR UPDATE", (player,))
    caller = Deferred.fromCoroutine(performing.perform(players.suspend, player))
    await until(reactor, lambda: lock_waiters(server.dsn))
    caller.cancel()
    locking.close()
    await caller
    assert SessionsEnded(player) in notices
    assert [event["event"] for event in audited] == ["register", "act"]


async def test_an_act_on_a_replay_names_it_and_its_player(server, acting, recorded):
    """Also once the replay is gone."""
    client = await server.player("ann")
    replay_id = await client.upload_replay(replay())
    await acting.perform(on_replays.unlist, replay_id)
    await acting.perform(on_replays.delete, replay_id)
    player = (await client.me()).id
    rows = [("unlist", "replay", player, replay_id), ("delete_replay", "replay", player, replay_id)]
    assert recorded("act, target, user_id::text, replay_id::text") == rows


async def test_an_act_that_fails_leaves_no_record(server, acting, recorded):
    """Nor does it change anything: both are one transaction."""
    first, second = await server.player("ann"), await server.player("bob")
    with pytest.raises(DatabaseError):
        await acting.perform(players.rename, (await first.me()).id, username="bob")
    with pytest.raises(NotFound):
        await acting.perform(profiles.hide, (await second.me()).id)
    assert recorded() == []
    assert (await first.me()).username == "ann"


async def test_a_record_that_fails_undoes_the_act(server, acting, recorded, monkeypatch):
    """The effect and the record are there both, or neither is."""
    me = await (await server.player("ann")).me()

    async def lock_badly(transaction, player):
        done = await players.lock.run(transaction, player)
        return Done(changed=True, after="\ud800", steps=done.steps)

    with pytest.raises(Exception, match="surrogate"):
        await acting.perform(Act("lock", "player", lock_badly), me.id)
    assert (recorded(), server.sql("SELECT * FROM profile_locks")) == ([], [])


@pytest.mark.parametrize(
    "change", ["UPDATE admin_acts SET actor = 'x'", "DELETE FROM admin_acts", "TRUNCATE admin_acts CASCADE"]
)
async def test_the_record_can_not_be_changed(server, acting, recorded, change):
    """Whoever tries gets an error, the owner of the tables too."""
    me = await (await server.player("ann")).me()
    await acting.perform(players.lock, me.id)
    before = recorded()
    with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="the record of acts can't be changed"):
        server.sql(change)
    assert recorded() == before


async def test_a_deletion_leaves_the_acts_nameless(server, acting, recorded):
    """The acts stay, and what names the player has gone with the account; a record of the deletion too."""
    client = await server.player("ann")
    me = await client.me()
    replay_id = await client.upload_replay(replay())
    await acting.perform(on_replays.unlist, replay_id)
    await acting.perform(players.lock, me.id)
    await acting.perform(players.delete, me.id)
    assert recorded("act, user_id, replay_id, note") == [
        (name, None, None, None) for name in ("unlist", "lock", "delete")
    ]
    with pytest.raises(NotFound):
        await acting.perform(players.delete, me.id)


@pytest.mark.parametrize("note", ["", " ", "x" * 501, "a\0b", "a\x1bb"])
def test_a_note_has_bounds(note):
    """It is not empty, has 500 characters at most, and no control characters."""
    with pytest.raises(BadRequest, match="note must"):
        Why(None, note)
    assert Why(None, " " + "x" * 500).note == "x" * 500
