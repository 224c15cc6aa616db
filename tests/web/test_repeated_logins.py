"""Logins and registrations that may be repeated with the same `retry_key` (docs/protocol.md "Sessions")."""

import pytest

from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD
from tests.harness.http_requests import new_address
from tests.web.browser import Browser

KEY = "a-key-of-one-request"
REGISTER, LOGIN = "/api/auth/register", "/api/auth/login"


async def send(server, path, key=KEY, name="ann", password=PASSWORD, **more):
    body = {"username": name, "password": password, "retry_key": key, **more}
    return await server.ask("POST", path, body=body, address=new_address())


def code(answer):
    return answer.status, answer.headers.get("error-code")


def sessions(server):
    return server.sql("SELECT count(*) FROM refresh_tokens")[0][0]


@pytest.mark.parametrize("path", [REGISTER, LOGIN])
async def test_repeated_request_gets_the_same_session(server, path):
    """The pair is the same, byte for byte, and no session begins. The answer names the player."""
    if path == LOGIN:
        await server.player("ann")
    before = sessions(server)
    answers = [await send(server, path, name=name) for name in ("ann", " ann ")]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content
    assert sessions(server) == before + 1
    (player,) = server.sql("SELECT id::text FROM users")[0]
    assert answers[0].json["player"] == {"id": player, "username": "ann", "guest": False}


@pytest.mark.parametrize("path", [REGISTER, LOGIN])
async def test_simultaneous_equal_requests_get_one_session(nodes, no_deadlocks, path):
    """Requests on two nodes wait for each other."""
    if path == LOGIN:
        await nodes[0].player("ann")
    before = sessions(nodes[0])
    answers = await gather(4, lambda number: send(nodes[number % 2], path), range(4))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sessions(nodes[0]) == before + 1


async def test_request_without_a_key_has_the_answer_of_1_1_0(server):
    """A pair of tokens and no other field; a second registration is refused."""
    for path in (REGISTER, LOGIN):
        answer = await send(server, path, None)
        assert list(answer.json) == ["access_token", "refresh_token"]
    assert code(await send(server, REGISTER, None)) == (409, "username_taken")
    assert sessions(server) == 2


@pytest.mark.parametrize("change", [{"key": "another-key-of-a-request"}, {"password": "another one"}], ids=str)
async def test_other_registration_finds_the_name_taken(server, change):
    """Another key, or another password with the same key."""
    await send(server, REGISTER)
    assert code(await send(server, REGISTER, **change)) == (409, "username_taken")
    assert sessions(server) == 1


async def test_key_needs_the_right_password(server):
    """The key alone signs in no player, and a wrong password is an ordinary failure."""
    await server.player("ann")
    await send(server, LOGIN)
    assert code(await send(server, LOGIN, password="not it at all")) == (401, "invalid_credentials")


@pytest.mark.parametrize(("first", "second"), [(REGISTER, LOGIN), (LOGIN, REGISTER)])
async def test_key_of_another_route_begins_a_session_or_is_refused(server, first, second):
    """A request is equal only on the same route."""
    if first == LOGIN:
        await server.player("ann")
    await send(server, first)
    answer = await send(server, second)
    assert code(answer) == ((200, None) if second == LOGIN else (409, "username_taken"))
    assert sessions(server) == 2


@pytest.mark.parametrize("end", ["refreshed", "a day later", "expired", "logged out"])
async def test_key_is_forgotten_with_its_session(server, end):
    """A login begins another session then, and a registration finds the name taken."""
    answer = await send(server, REGISTER)
    token = {"refresh_token": answer.json["refresh_token"]}
    if end == "refreshed":
        await server.ask("POST", "/api/auth/refresh", body=token)
    elif end == "a day later":
        server.sql("UPDATE refresh_tokens SET begun_at = now() - interval '25 hours'")
    elif end == "expired":
        server.sql("UPDATE refresh_tokens SET expires_at = now()")
    else:
        await server.ask("POST", "/api/auth/logout", body=token)
    assert code(await send(server, REGISTER)) == (409, "username_taken")
    login = await send(server, LOGIN)
    assert login.json["refresh_token"] != answer.json["refresh_token"]


async def test_repeated_login_of_a_suspended_player_is_refused(server):
    """A suspension ends the sessions, and the key with them."""
    await server.player("ann")
    await send(server, LOGIN)
    server.sql("INSERT INTO suspensions SELECT id, now(), NULL, NULL, false FROM users")
    server.sql("DELETE FROM refresh_tokens")
    assert code(await send(server, LOGIN)) == (403, "suspended")


@pytest.mark.parametrize("key", ["short", "x" * 65, "not a key, for it has spaces", 7], ids=str)
async def test_key_has_a_form(server, key):
    """A key of another form is refused before anything happens."""
    for path in (REGISTER, LOGIN):
        assert code(await send(server, path, key)) == (400, "bad_field")
    assert sessions(server) == 0


@pytest.mark.parametrize("register", [True, False])
async def test_page_repeats_a_login_whose_answer_was_lost(server, register):
    """The browser may have the cookie of the lost answer or the one before it; neither session ends."""
    if not register:
        await server.player("ann")
    first, second = Browser(server), Browser(server)
    more = {"register": register, "retry_key": KEY}
    before = await first.begin(**more)
    assert list(before.json) == ["access_token", "username", "player"]
    second.token = first.token
    again = await second.begin(**more)
    assert (again.content, second.token) == (before.content, first.token)
    assert (await second.refresh()).status == 200


async def test_refresh_with_a_key_names_the_player(server):
    """A repeat and the refresh of a page do so, too. Without a key the answer is that of 1.1.0."""
    pair = (await send(server, REGISTER)).json
    body = {"refresh_token": pair["refresh_token"], "retry_key": KEY}
    answers = [await server.ask("POST", "/api/auth/refresh", body=body) for _ in range(2)]
    assert [answer.json["player"] for answer in answers] == [pair["player"]] * 2
    plain = {"refresh_token": answers[0].json["refresh_token"]}
    assert list((await server.ask("POST", "/api/auth/refresh", body=plain)).json) == ["access_token", "refresh_token"]
    page = Browser(server)
    await page.begin()
    assert (await page.refresh({"retry_key": KEY})).json["player"] == pair["player"]
    assert list((await page.refresh()).json) == ["access_token", "username"]


async def test_refresh_of_a_guest_names_the_guest(server):
    """Its device needs no other request to know whose session it has."""
    guest = (await server.ask("POST", "/api/auth/guest", body={"guest_key": "k" * 22})).json
    body = {"refresh_token": guest["refresh_token"], "retry_key": KEY}
    answer = await server.ask("POST", "/api/auth/refresh", body=body)
    assert answer.json["player"] == guest["player"]
