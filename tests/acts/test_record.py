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


async def test_act_is_recorded_with_actor_and_reason(server, acting, recorded):
    """The record has the act's name, the actor, the reason, the note, and the change."""
    me = await (await server.player("ann")).me()
    assert (await acting.perform(players.rename, me.id, username="anna")).changed
    assert recorded() == [("shell", "ann_the_operator", "rename", "player", "spam", "seen by hand", "ann", "anna")]
    assert recorded("user_id::text, replay_id") == [(me.id, None)]


async def test_username_is_trimmed_as_at_registration(server, acting):
    """The player couldn't log in with it otherwise."""
    ann = await server.player("ann")
    assert (await acting.perform(players.rename, (await ann.me()).id, username=" anna ")).after == "anna"
    assert (await ann.me()).username == "anna"
    assert not (await acting.perform(players.rename, (await ann.me()).id, username="anna ")).changed


async def test_deletion_has_a_line_in_the_audit_trail(server, acting, audited):
    """An operator's deletion has the line `account deleted`, like a player's."""
    player = (await (await server.player("ann")).me()).id
    await acting.perform(players.delete, player)
    assert [event["event"] for event in audited] == ["register", "act", "account deleted"]


async def test_expired_sessions_do_not_count_as_ended(server, acting):
    """The result counts sessions that players had."""
    player = (await (await server.player("ann")).me()).id
    server.sql("UPDATE refresh_tokens SET expires_at = now()")
    done = await acting.perform(players.end_sessions, player)
    assert (done.changed, done.result) == (False, 0)


async def test_act_on_a_missing_entry_has_its_own_code(server, acting):
    """The player exists, so the code isn't `player_not_found`."""
    player = (await (await server.player("ann")).me()).id
    for act, given in ((profiles.hide, {}), (profiles.show, {}), (profiles.name, {"display_name": "Ann"})):
        with pytest.raises(NotFound) as error:
            await acting.perform(act, player, **given)
        assert error.value.code == "entry_not_found"


async def test_act_is_reported_after_a_hang_up(reactor, server, acting, audited):
    """The caller leaves while the act commits: streams get the notice, and the audit trail its line."""
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


async def test_act_on_a_replay_records_the_replay_and_its_player(server, acting, recorded):
    """The record keeps both when the replay is deleted."""
    client = await server.player("ann")
    replay_id = await client.upload_replay(replay())
    await acting.perform(on_replays.unlist, replay_id)
    await acting.perform(on_replays.delete, replay_id)
    player = (await client.me()).id
    rows = [("unlist", "replay", player, replay_id), ("delete_replay", "replay", player, replay_id)]
    assert recorded("act, target, user_id::text, replay_id::text") == rows


async def test_failed_act_leaves_no_record(server, acting, recorded):
    """The act and its record are one transaction, so nothing changes."""
    first, second = await server.player("ann"), await server.player("bob")
    with pytest.raises(DatabaseError):
        await acting.perform(players.rename, (await first.me()).id, username="bob")
    with pytest.raises(NotFound):
        await acting.perform(profiles.hide, (await second.me()).id)
    assert recorded() == []
    assert (await first.me()).username == "ann"


async def test_failed_record_undoes_the_act(server, acting, recorded, monkeypatch):
    """The database stores neither the effect nor the record."""
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
async def test_record_can_not_be_changed(server, acting, recorded, change):
    """The owner of the tables gets an error too."""
    me = await (await server.player("ann")).me()
    await acting.perform(players.lock, me.id)
    before = recorded()
    with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="the record of acts can't be changed"):
        server.sql(change)
    assert recorded() == before


async def test_deletion_removes_the_name_from_all_acts(server, acting, recorded):
    """The acts stay, and so does the record of the deletion, without the player's and the replays' ids."""
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
def test_note_has_bounds(note):
    """A note has 1 to 500 characters, and no control characters."""
    with pytest.raises(BadRequest, match="note must"):
        Why(None, note)
    assert Why(None, " " + "x" * 500).note == "x" * 500
