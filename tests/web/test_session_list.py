"""The sessions of a player: listing them, and ending one or all (docs/protocol.md "Sessions")."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from twisted.internet.defer import Deferred

from solisync.rules.sessions import user_agent
from tests.harness.concurrency import until
from tests.harness.constants import PASSWORD
from tests.harness.postgres import connect, lock_waiters
from tests.harness.service import refused
from tests.harness.tokens import refresh_token

MONTH = timedelta(days=30)


async def another(server, username="ann", **headers):
    """Return a client with a further session of this player."""
    client = server.client()
    client._headers |= headers
    await client.login(username, PASSWORD)
    return client


async def test_sessions_are_listed_last_used_first(server):
    """Each session has an id, its times and its User-Agent; the caller's session is marked."""
    began = datetime.now(UTC)
    first = await server.player("ann")
    second = await another(server, **{"User-Agent": "Solitaire/2.1 (Linux)"})
    newest, oldest = await first.sessions()
    assert (newest.current, oldest.current) == (False, True)
    assert newest.user_agent == "Solitaire/2.1 (Linux)"
    assert began <= oldest.begun_at == oldest.used_at < newest.begun_at == newest.used_at <= datetime.now(UTC)
    assert abs(newest.expires_at - newest.used_at - MONTH) < timedelta(seconds=2)
    assert UUID(newest.id).version == UUID(oldest.id).version == 4
    assert [session.current for session in await second.sessions()] == [True, False]


async def test_refresh_keeps_the_session(server):
    """The id and the beginning stay. The time of use and the User-Agent are the refresh's."""
    client = await server.player("ann")
    (before,) = await client.sessions()
    client._headers["User-Agent"] = "newer"
    await client.refresh()
    (after,) = await client.sessions()
    assert (after.id, after.begun_at, after.user_agent) == (before.id, before.begun_at, "newer")
    assert after.used_at > before.used_at
    assert after.current


async def test_token_that_an_older_node_imports_is_a_session(server):
    """It gives the token, the player and the end alone. The next refresh keeps the id and the beginning."""
    client = await server.player("ann")
    server.sql(
        "WITH given AS (DELETE FROM refresh_tokens RETURNING jti, user_id, expires_at)"
        " INSERT INTO refresh_tokens (jti, user_id, expires_at) SELECT * FROM given"
    )
    (first,) = await client.sessions()
    assert (first.begun_at, first.user_agent, first.current) == (first.used_at, None, False)
    await client.refresh()
    (found,) = await client.sessions()
    assert (found.id, found.begun_at, found.current) == (first.id, first.begun_at, True)


async def test_logout_ends_the_session_of_its_token(server):
    """The refresh token is refused afterwards. Logout may be repeated, and other sessions continue."""
    client, other = await server.player("ann"), await another(server)
    token = client.tokens
    assert (await client.logout()).ok
    client.tokens = token
    assert (await client.logout()).ok
    client.tokens = token
    assert await refused(client.refresh()) == (401, "unauthorized")
    assert len(await other.sessions()) == 1


async def test_logout_with_a_spent_token_ends_nothing(server):
    """The session continues with its newer token."""
    client = await server.player("ann")
    spent = client.tokens
    fresh = await client.refresh()
    client.tokens = spent
    assert (await client.logout()).ok
    client.tokens = fresh
    assert await client.refresh()


async def test_logout_takes_refresh_tokens_only(server):
    """Other kinds, other signatures, expired tokens and no token return 401. A deleted player's token returns 200."""
    client = await server.player("ann")
    me, now = await client.me(), datetime.now(UTC)
    for token in (
        client.tokens.access_token,
        refresh_token(me.id, str(uuid4()), now, b"x" * 32),
        refresh_token(me.id, str(uuid4()), now - 2 * MONTH),
        "",
    ):
        answer = await server.ask("POST", "/api/auth/logout", body={"refresh_token": token})
        assert (answer.status, answer.json) == (401, {"error": "unauthorized"})
    token = client.tokens
    await client.delete_account()
    client.tokens = token
    assert (await client.logout()).ok


async def test_session_can_be_ended_by_its_id(server):
    """Its refresh token is refused from then on; its access token stays valid. A second request returns 404."""
    client, other = await server.player("ann"), await another(server)
    (session,) = [session for session in await client.sessions() if not session.current]
    assert (await client.end_session(session.id)).ok
    assert await refused(other.refresh()) == (401, "unauthorized")
    assert (await other.me()).username == "ann"
    assert await refused(client.end_session(session.id)) == (404, "session not found")


@pytest.mark.parametrize("name", ["another's", "nobody's", "no-id", "x" * 100])
async def test_player_can_end_only_own_sessions(server, name):
    """Another player's session, an unknown id and a malformed id return the same 404."""
    client, other = await server.player("ann"), await server.player("bob")
    (session,) = await other.sessions()
    given = {"another's": session.id, "nobody's": str(uuid4())}.get(name, name)
    assert await refused(client.end_session(given)) == (404, "session not found")
    assert await other.refresh()


async def test_all_sessions_can_be_ended(server):
    """DELETE /api/sessions ends the caller's session too, but no session of another player."""
    client, other, stranger = await server.player("ann"), await another(server), await server.player("bob")
    token = client.tokens
    assert (await client.end_sessions()).ok
    client.tokens = token
    assert await client.sessions() == []
    for each in (client, other):
        assert await refused(each.refresh()) == (401, "unauthorized")
    assert len(await stranger.sessions()) == 1


async def test_ending_a_session_waits_for_its_refresh(reactor, server):
    """The token of a simultaneous refresh is refused too."""
    client, other = await server.player("ann"), await another(server)
    (session,) = [session for session in await client.sessions() if session.current]
    with closing(connect(server.dsn)) as blocking:
        blocking.cursor().execute("BEGIN; SELECT FROM users FOR UPDATE")
        refresh = Deferred.fromCoroutine(client.refresh())
        await until(reactor, lambda: len(lock_waiters(server.dsn)) == 1)
        ending = Deferred.fromCoroutine(other.end_session(session.id))
        await until(reactor, lambda: len(lock_waiters(server.dsn)) == 2)
        blocking.rollback()
    await refresh
    assert (await ending).ok
    assert await refused(client.refresh()) == (401, "unauthorized")


async def test_player_has_at_most_a_hundred_sessions(server):
    """The next login ends the session that was used longest ago. Expired sessions don't count."""
    client = await server.player("ann")
    (oldest,) = await client.sessions()
    server.sql(
        "INSERT INTO refresh_tokens (jti, user_id, expires_at)"
        " SELECT gen_random_uuid(), id, now() + interval '30 d' + n * interval '1 s'"
        " FROM users, generate_series(1, 99) AS n"
    )
    server.sql("INSERT INTO refresh_tokens SELECT gen_random_uuid(), id, now() - interval '1 s' FROM users")
    assert len(await client.sessions()) == 100
    newest = await another(server)
    left = await newest.sessions()
    assert len(left) == 100
    assert oldest.id not in {session.id for session in left}
    assert [session.current for session in left] == [session.current for session in left if session.current] + 99 * [
        False
    ] or sum(session.current for session in left) == 1


@pytest.mark.parametrize(
    ("header", "stored"),
    [
        (None, None),
        ("", None),
        ("Godot/4.3", "Godot/4.3"),
        ("a\tb\x7fc\x85", "abc"),
        ("\x1b[31mred", "[31mred"),
        ("x" * 500, "x" * 200),
        ("Spiel für zwei ♠".encode().decode("latin-1"), "Spiel für zwei ♠"),
        ("caf\xe9", "café"),
    ],
)
def test_user_agent_is_cleaned_and_shortened(header, stored):
    """Control characters are removed, then 200 characters are kept. Bytes that aren't UTF-8 are read as Latin-1."""
    assert user_agent(header) == stored
