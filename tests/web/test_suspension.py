"""Replies to suspended players, and the lists that hide them (docs/protocol.md "Suspension")."""

from datetime import UTC, datetime, timedelta

import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.acts import players, profiles
from solisync.client import ApiError
from solisync.commands.smoke import PIXEL
from solisync.rules.administration import suspension_error
from solisync.web.shared_cache import SECONDS
from tests.harness.acting import act, operator
from tests.harness.boards import check
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD
from tests.harness.payloads import replay
from tests.harness.postgres import connect, lock_waiters
from tests.harness.service import refused

UNTIL = datetime(2199, 5, 1, 12, tzinfo=UTC)
TEXT = "this account is suspended until 2199-05-01 12:00:00 UTC: no more of this"
INSERT_OF_AN_OLDER_NODE = """
    WITH player AS (SELECT id FROM users WHERE id = %s FOR NO KEY UPDATE)
    INSERT INTO refresh_tokens (jti, user_id, expires_at)
    SELECT gen_random_uuid(), id, now() + interval '30 days' FROM player RETURNING jti
"""


async def test_avatar_of_a_suspended_player_is_hidden(server, reactor):
    """The picture returns 404, and the page of a replay doesn't refer to it, until the suspension ends."""
    ann, bob = await server.player("ann"), await server.player("bob")
    me = await ann.upload_avatar(PIXEL, "image/png")
    replay_id = await ann.upload_replay(replay())

    async def shown_again():
        answer = await server.ask("GET", me.avatar_url, bearer=bob.tokens.access_token)
        page = (await server.ask("GET", f"/replays/{replay_id}")).content.decode()
        return answer.status, me.avatar_url in page

    assert await shown_again() == (200, True)
    await act(reactor, server.dsn, players.suspend, me.id)
    assert await shown_again() == (404, False)
    headers = {"If-None-Match": "*"}
    answer = await server.ask("GET", me.avatar_url, headers, bearer=bob.tokens.access_token)
    assert (answer.status, answer.headers["error-code"]) == (404, "avatar_not_found")
    await act(reactor, server.dsn, players.unsuspend, me.id)
    assert await shown_again() == (200, True)


@pytest.mark.parametrize("path", ["/api/auth/login", "/api/session"])
async def test_only_the_right_password_reveals_the_suspension(server, reactor, path):
    """The right password returns 403 with the message, a wrong one 401. Neither begins a session."""
    ann = await server.player("ann")
    me = await ann.me()
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.suspend, me.id, until=UNTIL, message="no more of this")
    own = {"Origin": server.url, "Host": server.url.removeprefix("http://"), "Content-Type": "application/json"}
    answer = await server.ask("POST", path, own, body={"username": "ann", "password": PASSWORD})
    assert (answer.status, answer.headers["error-code"], answer.json) == (403, "suspended", {"error": TEXT})
    assert answer.headers["suspended-until"] == "2199-05-01T12:00:00Z"
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.suspend, me.id)
    answer = await server.ask("POST", path, own, body={"username": "ann", "password": PASSWORD})
    assert (answer.status, answer.headers.get("suspended-until")) == (403, None)
    answer = await server.ask("POST", path, own, body={"username": "ann", "password": "wrong " + PASSWORD})
    assert (answer.status, answer.json) == (401, {"error": "invalid credentials"})
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(0,)]


async def shown_of(server, other):
    """Return the places where other players see a player who has won."""
    recent = (await server.ask("GET", "/api/replays/recent")).json
    verified = (await server.ask("GET", "/api/replays/recent?verdict=verified")).json
    of_player = await server.ask("GET", "/api/players/ann/replays")
    leaderboard = [entry.display_name for entry in await other.leaderboard()]
    board = (await other.classic_board()).entries
    return [
        [each["username"] for each in recent],
        [each["username"] for each in verified],
        of_player.status,
        leaderboard,
        [entry.display_name for entry in board],
    ]


EVERYWHERE = [["ann"], ["ann"], 200, ["Ann the Great"], ["Ann the Great"]]
NOWHERE = [[], [], 404, [], []]


async def winner(server, name="ann"):
    ann = await server.player(name)
    await ann.opt_in("Ann the Great")
    replay_id = await ann.upload_replay(replay())
    check(server.dsn, replay_id, 0)
    return ann, replay_id


async def test_suspension_removes_a_player_from_all_lists_until_it_ends(server, reactor):
    """Replays keep their links, but aren't indexed."""
    ann, replay_id = await winner(server)
    bob = await server.player("bob")
    me = await ann.me()
    assert await shown_of(server, bob) == EVERYWHERE
    await act(reactor, server.dsn, players.suspend, me.id)
    assert await shown_of(server, bob) == NOWHERE
    assert (await server.ask("GET", f"/api/replays/{replay_id}")).status == 200
    page = await server.ask("GET", f"/replays/{replay_id}")
    assert (page.status, b'content="noindex"' in page.content) == (200, True)
    await act(reactor, server.dsn, players.unsuspend, me.id)
    assert await shown_of(server, bob) == EVERYWHERE
    assert await refused(ann.me()) == (401, "unauthorized")  # earlier tokens remain cut off
    await ann.login("ann", PASSWORD)
    assert (await ann.me()).username == "ann"
    assert [session.current for session in await ann.sessions()] == [True]


@pytest.mark.parametrize("visible", [True, False])
@pytest.mark.parametrize("decided", [None, profiles.hide, profiles.show])
async def test_visibility_set_during_a_suspension_applies_after_it(server, reactor, visible, decided):
    """An admin hides or shows the entry. Otherwise the entry is as visible as before."""
    ann = await server.player("ann")
    await ann.opt_in("Ann")
    if not visible:
        await ann.opt_out()
    me = await ann.me()
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.suspend, me.id)
        await acting.perform(players.lock, me.id)  # a lock hides nothing
        if decided is not None:
            await acting.perform(decided, me.id)
        assert server.sql("SELECT visible FROM leaderboard") == [(False,)]
        await acting.perform(players.unsuspend, me.id)
    wanted = {None: visible, profiles.hide: False, profiles.show: True}[decided]
    assert server.sql("SELECT visible FROM leaderboard") == [(wanted,)]


async def test_older_node_can_not_begin_or_refresh_a_session(server, reactor):
    """Inserting a refresh token returns no row, which older nodes take for a spent token."""
    ann = await server.player("ann")
    me = await ann.me()
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.suspend, me.id)
    inserted = server.sql(
        "INSERT INTO refresh_tokens (jti, user_id, expires_at) VALUES (gen_random_uuid(), %s, now()) RETURNING 1",
        (me.id,),
    )
    assert inserted == []
    server.sql(
        """
        INSERT INTO leaderboard (user_id, display_name, recorded_at, visible) VALUES (%s, 'Ann', now(), true)
        ON CONFLICT (user_id) DO UPDATE SET visible = true
        """,
        (me.id,),
    )
    assert server.sql("SELECT visible FROM leaderboard") == [(False,)]


async def test_session_does_not_begin_if_the_player_is_suspended_first(server, reactor):
    """An older node's statement waits for the player's row while the suspension commits."""
    ann = await server.player("ann")
    me = await ann.me()
    suspending = connect(server.dsn)
    try:
        with suspending.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT 1 FROM users WHERE id = %s FOR UPDATE", (me.id,))
            cursor.execute("INSERT INTO suspensions VALUES (%s, now(), NULL, NULL, false)", (me.id,))
            waiting = deferToThread(server.sql, INSERT_OF_AN_OLDER_NODE, (me.id,))
            await until(reactor, lambda: lock_waiters(server.dsn))
            cursor.execute("COMMIT")
        assert await waiting == []
        assert server.sql("SELECT count(*) FROM refresh_tokens") == [(1,)]
    finally:
        suspending.close()


async def test_second_suspension_replaces_end_and_message(server, reactor):
    """The new end and the new message may be absent."""
    ann = await server.player("ann")
    me = await ann.me()
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.suspend, me.id, until=UNTIL, message="one")
        assert await refused(ann.login("ann", PASSWORD)) == (403, str(suspension_error(UNTIL, "one", 0)))
        await acting.perform(players.suspend, me.id)
        assert await refused(ann.login("ann", PASSWORD)) == (403, "this account is suspended")


@pytest.mark.parametrize(
    ("behind", "longer"), [(60, ""), (150, ", or up to 3 minutes longer while the service catches up")]
)
async def test_error_says_how_late_a_suspension_may_end(server, reactor, behind, longer):
    """A suspension ends by the retention clock. The text is the same at a login and for an access token."""
    ann = await server.player("ann")
    await act(reactor, server.dsn, players.suspend, (await ann.me()).id, until=UNTIL)
    server.sql("UPDATE retention_clock SET at = now() - make_interval(secs => %s)", (behind,))
    text = f"this account is suspended until 2199-05-01 12:00:00 UTC{longer}"
    assert await refused(ann.login("ann", PASSWORD)) == (403, text)
    await deferLater(reactor, SECONDS)  # until the process has asked again
    answer = await server.ask("GET", "/api/me", bearer=ann.tokens.access_token)
    assert (answer.status, answer.json) == (403, {"error": text})


async def test_locked_player_can_not_change_what_others_see(server, reactor):
    """Opting in, the avatar and listing held replays return 403.

    Playing, hiding and deleting work; new replays are held.
    """
    ann, former = await winner(server)
    me = await ann.me()
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.lock, me.id)
    for name in ("Ann the Great", "Ann the Greatest"):
        with pytest.raises(ApiError, match="an operator has locked this") as caught:
            await ann.opt_in(name)
        assert (caught.value.status, caught.value.code) == (403, "locked")
    with pytest.raises(ApiError, match="an operator has locked this"):
        await ann.upload_avatar(PIXEL, "image/png")
    assert (await ann.me()).avatar_url is None
    held = await ann.upload_replay(replay(moves=1))
    listed = {each.id: each.listed for each in (await ann.own_replays()).replays}
    assert listed == {former: True, held: False}
    assert await refused(ann.set_listed(held, True)) == (403, "an operator has locked this")
    await ann.set_listed(held, False)
    await ann.set_listed(former, False)
    await ann.set_listed(former, True)
    await ann.opt_out()
    await ann.delete_avatar()
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.unlock, me.id)
    assert await refused(ann.set_listed(held, True)) == (403, "an operator has locked this")
    await ann.opt_in("Ann")
    await ann.upload_avatar(PIXEL, "image/png")
    await ann.delete_replay(held)


async def test_locked_player_can_not_list_the_replays_of_a_joined_guest(server, reactor):
    """The replays are held like an upload, also after the lock has ended."""
    ann, guest = await server.player("ann"), server.client()
    me = await ann.me()
    await guest.guest()
    replay_id = await guest.upload_replay(replay())
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.lock, me.id)
        await ann.join(guest.tokens.refresh_token)
        assert await refused(ann.set_listed(replay_id, True)) == (403, "an operator has locked this")
        await acting.perform(players.unlock, me.id)
    assert await refused(ann.set_listed(replay_id, True)) == (403, "an operator has locked this")


async def test_older_node_can_not_rename_or_list_under_a_lock(server, reactor):
    """Its opt-in keeps name and visibility, and its listing leaves held replays unlisted."""
    ann, _ = await winner(server)
    me = await ann.me()
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(profiles.hide, me.id, lock=True)
        held = await ann.upload_replay(replay(moves=1))
        server.sql("UPDATE leaderboard SET display_name = 'Rude', visible = true")
        server.sql("UPDATE replays SET unlisted = NULL WHERE id = %s", (held,))
        assert server.sql("SELECT display_name, visible FROM leaderboard") == [("Ann the Great", False)]
        assert server.sql("SELECT unlisted, held FROM replays WHERE id = %s", (held,)) == [(True, True)]
        await acting.perform(profiles.name, me.id, display_name="A player")
        await acting.perform(profiles.show, me.id)
    assert server.sql("SELECT display_name, visible FROM leaderboard") == [("A player", True)]


async def test_cutoff_ends_only_earlier_access_tokens(server, reactor):
    """Their sessions end too. A new login works immediately, and its token is later than the cutoff."""
    ann = await server.player("ann")
    other = server.client()
    await other.login("ann", PASSWORD)
    me = await ann.me()
    done = await act(reactor, server.dsn, players.end_sessions, me.id, access=True)
    assert done.result == 2
    for client in (ann, other):
        assert await refused(client.me()) == (401, "unauthorized")
        assert await refused(client.refresh()) == (401, "unauthorized")
    await ann.login("ann", PASSWORD)
    await other.login("ann", PASSWORD)
    await ann.refresh()
    assert (await ann.me()).id == (await other.me()).id == me.id
    expiries = server.sql("SELECT access_expiry > cutoff FROM refresh_tokens JOIN access_cutoffs USING (user_id)")
    assert expiries == [(True,), (True,)]
    assert server.sql("SELECT count(DISTINCT each) FROM users, unnest(access_expiries) AS each") == [(5,)]


async def test_cutoff_allows_for_wrong_clocks(server, reactor):
    """Tokens that a fast node has issued are refused, tokens that a slow node issues later are accepted."""
    ann = await server.player("ann")
    me = await ann.me()
    ((expiry,),) = server.sql("SELECT access_expiries[1] FROM users")
    server.sql("UPDATE users SET access_expiries = ARRAY[%s::bigint]", (expiry + 30,))
    async with operator(reactor, server.dsn) as acting:
        await acting.perform(players.end_sessions, me.id, access=True)
        assert server.sql("SELECT cutoff >= %s FROM access_cutoffs", (expiry + 30,)) == [(True,)]
        await ann.login("ann", PASSWORD)
        again = await acting.perform(players.end_sessions, me.id, access=True)
        assert (again.changed, again.result) == (True, 1)
        assert not (await acting.perform(players.end_sessions, me.id, access=True)).changed
    slow = "UPDATE users SET access_expiries = with_access_expiry(access_expiries, %s) RETURNING access_expiries[1]"
    ((first,),) = server.sql(slow, (expiry - 30,))
    ((second,),) = server.sql(slow, (expiry - 30,))
    ((cutoff,),) = server.sql("SELECT cutoff FROM access_cutoffs")
    assert cutoff < first < second
    assert timedelta(seconds=second - expiry) < timedelta(minutes=2)
