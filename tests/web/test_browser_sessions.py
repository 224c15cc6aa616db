"""Sessions of browsers: a cookie takes the place of the refresh token (docs/protocol.md "Sessions of browsers")."""

import pytest

from solisync.errors import Unavailable
from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD
from tests.harness.http_requests import new_address
from tests.harness.postgres import truncate
from tests.harness.service import refused, start
from tests.web.browser import CHANGE, LOGIN, Browser, registered, sessions


@pytest.mark.parametrize("https", [False, True])
async def test_cookie_changes_with_each_step_and_is_gone_at_the_end(server, https):
    """The browser registers, refreshes, changes the password, which ends other sessions, and ends its own."""
    browser = Browser(server, https=https)
    answer = await browser.begin(" ann ", register=True)
    assert (answer.status, answer.json["username"]) == (200, "ann")
    seen = {browser.token}
    answer = await browser.refresh()
    assert (answer.status, answer.json["username"]) == (200, "ann")
    seen.add(browser.token)
    await server.client().login("ann", PASSWORD)
    answer = await browser.change(PASSWORD, "another one")
    assert (answer.status, answer.json["username"]) == (200, "ann")
    seen.add(browser.token)
    assert len(seen) == 3
    assert (await server.ask("GET", "/api/me", bearer=browser.access_token)).json["username"] == "ann"
    assert sessions(server) == 1
    answer = await browser.end()
    assert (answer.status, answer.json, browser.token) == (200, {"ok": True}, None)
    assert sessions(server) == 0
    assert (await browser.begin(password=PASSWORD)).status == 401
    assert (await browser.begin(password="another one")).status == 200


async def test_browser_session_is_an_ordinary_session(server):
    """Its refresh token, access token and place in the list work for all clients."""
    browser = await registered(server)
    client = server.client()
    await client.login("ann", PASSWORD)
    listed = (await server.ask("GET", "/api/sessions", bearer=browser.access_token)).json
    assert [session["current"] for session in listed] == [False, True]
    answer = await server.ask("POST", "/api/auth/refresh", body={"refresh_token": browser.token})
    assert answer.status == 200
    assert (await browser.refresh()).status == 401
    await client.end_sessions()
    assert sessions(server) == 0


async def test_body_never_has_the_refresh_token(server):
    """The body has neither the new token nor the one of the cookie."""
    browser = await registered(server)
    first = browser.token
    for answer in (await browser.refresh(), await browser.change(PASSWORD, PASSWORD), await browser.begin()):
        assert answer.status == 200
        assert browser.token.encode() not in answer.content
        assert first.encode() not in answer.content


async def test_new_login_ends_the_session_of_the_cookie(server):
    """A browser has one session at a time, even with several players. Other sessions continue."""
    other = await server.player("ann")
    browser = await registered(server, "bob")
    assert sessions(server) == 2
    assert (await browser.begin("ann")).status == 200
    assert sessions(server) == 2
    live = server.sql("SELECT username FROM refresh_tokens JOIN users ON users.id = user_id")
    assert live == [("ann",), ("ann",)]
    assert (await browser.begin("cem", register=True)).status == 200
    assert sessions(server) == 2
    await other.refresh()


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é", "=;", "spent", "access token"])
async def test_login_ignores_an_unusable_cookie(server, token):
    """A spent cookie ends nothing."""
    client = await server.player()
    if token == "spent":
        token = client.tokens.refresh_token
        await client.refresh()
    elif token == "access token":
        token = client.tokens.access_token
    browser = Browser(server)
    browser.token = token
    assert (await browser.begin()).status == 200
    assert sessions(server) == 2


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"username": "ann", "password": "not it at all"}, 401, "invalid_credentials"),
        ({"username": "nobody", "password": PASSWORD}, 401, "invalid_credentials"),
        ({"username": "ann", "password": PASSWORD, "register": True}, 409, "username_taken"),
        ({"username": "b", "password": PASSWORD, "register": True}, 400, "username_length"),
        ({"username": "bob!", "password": PASSWORD, "register": True}, 400, "username_characters"),
        ({"username": "bob", "password": "short", "register": True}, 400, "password_length"),
        ({"username": "bob", "password": "x" * 1025, "register": True}, 400, "password_too_long"),
        ({"username": "ann", "password": PASSWORD, "register": "yes"}, 400, "bad_field"),
        ({"username": "ann", "password": PASSWORD, "register": 1}, 400, "bad_field"),
        ({"username": "ann"}, 400, "bad_field"),
        (b"username=ann&password=x", 400, "bad_json"),
    ],
)
async def test_failed_login_keeps_the_cookie_and_its_session(server, body, status, code):
    """The errors are the same as for all clients."""
    browser = await registered(server)
    before = browser.token
    answer = await browser.ask(*LOGIN, body)
    assert (answer.status, answer.headers["error-code"]) == (status, code)
    assert "set-cookie" not in answer.headers
    assert browser.token == before
    assert (await browser.refresh()).status == 200


async def test_login_registers_only_with_register_true(server):
    """False counts as absent."""
    assert (await Browser(server).begin("bob", register=False)).status == 401
    assert server.sql("SELECT count(*) FROM users") == [(0,)]


@pytest.mark.parametrize("token", [None, "", "x", "a.b.c", "access token", "é"])
async def test_cookie_without_a_refresh_token_is_cleared(server, token):
    """The status is 401, as for all clients."""
    browser = await registered(server)
    browser.token = browser.access_token if token == "access token" else token
    answer = await browser.refresh()
    assert (answer.status, answer.headers["error-code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert answer.json == {"error": "unauthorized"}


async def test_deleted_player_is_signed_out(server):
    """The next refresh clears the cookie."""
    browser = await registered(server)
    await server.ask("DELETE", "/api/account", bearer=browser.access_token)
    assert (await browser.refresh()).status == 401
    assert browser.token is None
    assert (await browser.end()).status == 200


async def test_only_one_of_simultaneous_refreshes_succeeds(server):
    """A cookie works once: two tabs get one new cookie together."""
    browser = await registered(server)
    tabs = [Browser(server) for _ in range(8)]
    for tab in tabs:
        tab.token = browser.token
    answers = await gather(8, Browser.refresh, tabs)
    assert sorted(answer.status for answer in answers) == [200] + [401] * 7
    assert sessions(server) == 1
    (winner,) = [tab for tab in tabs if tab.token != browser.token]
    assert (await winner.refresh()).status == 200


@pytest.mark.parametrize("body", [None, {}, {"retry_key": None}, {"more": 1}], ids=str)
async def test_refresh_needs_no_body(server, body):
    """Pages of 1.0.0 send an empty object."""
    assert (await (await registered(server)).refresh(body)).status == 200


@pytest.mark.parametrize(
    ("current", "new", "status", "code"),
    [
        ("not it at all", "another one", 401, "invalid_credentials"),
        ("x" * 1025, "another one", 401, "invalid_credentials"),
        (PASSWORD, "short", 400, "password_length"),
        (PASSWORD, "x" * 1025, 400, "password_too_long"),
        (PASSWORD, 5, 400, "bad_field"),
    ],
)
async def test_refused_password_change_keeps_the_cookie(server, current, new, status, code):
    """A player who mistypes the current password stays signed in."""
    browser = await registered(server)
    answer = await browser.change(current, new)
    assert (answer.status, answer.headers["error-code"]) == (status, code)
    assert "set-cookie" not in answer.headers
    assert (await browser.refresh()).status == 200


async def test_expired_access_token_keeps_the_cookie(server):
    """The page only has to refresh."""
    browser = await registered(server)
    answer = await browser.ask(*CHANGE, {"current_password": PASSWORD, "new_password": PASSWORD}, bearer="x")
    assert (answer.status, answer.headers["error-code"]) == (401, "unauthorized")
    assert "set-cookie" not in answer.headers
    assert (await browser.refresh()).status == 200


async def test_changing_a_password_needs_an_access_token(server):
    """The cookie isn't enough. Deleted players get the same replies as with other clients."""
    browser = await registered(server)
    body = {"current_password": PASSWORD, "new_password": "another one"}
    assert (await browser.ask(*CHANGE, body)).status == 401
    await server.ask("DELETE", "/api/account", bearer=browser.access_token)
    assert (await browser.change(PASSWORD, "short")).headers["error-code"] == "password_length"
    assert (await browser.change(PASSWORD, "another one")).headers["error-code"] == "user_not_found"


@pytest.mark.parametrize("token", [None, "", "x", "a.b.c", "é"])
async def test_sign_out_without_a_usable_cookie_succeeds(server, token):
    """No session ends, and the cookie is cleared."""
    browser = await registered(server)
    browser.token = token
    answer = await browser.end()
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert sessions(server) == 1


async def test_sign_out_has_no_rate_limit(server):
    """Signing out works after the limit of logins is used up, and doesn't count towards it."""
    browser = await registered(server)
    for _ in range(15):
        assert (await browser.end()).status == 200
    for _ in range(9):
        assert (await browser.begin("nobody")).status == 401
    assert (await browser.begin("nobody")).status == 429
    assert (await browser.end()).status == 200


async def test_rate_limited_refresh_keeps_the_cookie(server):
    """All routes that begin or refresh sessions share ten requests of an address."""
    browser = await registered(server)
    client = server.client(browser.address)
    for _ in range(3):
        assert (await browser.refresh()).status == 200
        await client.login("ann", PASSWORD)
        await client.refresh()
    before = browser.token
    for attempt in (browser.refresh(), browser.begin(), browser.begin("bob", register=True)):
        answer = await attempt
        assert answer.status == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert "set-cookie" not in answer.headers
    assert await refused(client.refresh()) == (429, "too many requests")
    assert browser.token == before
    browser.address = new_address()
    assert (await browser.refresh()).status == 200


async def test_remembered_refusal_costs_no_statement(server, monkeypatch):
    """A process that has refused an address refuses again from memory, whatever the cookie and the body are."""
    browser, asked = await registered(server), set()
    for _ in range(10):
        last = await browser.refresh()
    database = server.service.parts.database
    original = database.run

    async def run(work, *arguments, **more):
        asked.add(work.__name__)
        return await original(work, *arguments, **more)

    monkeypatch.setattr(database, "run", run)
    answers = [last, await browser.refresh()]
    answers.append(await server.ask("POST", "/api/auth/refresh", body=b"nonsense", address=browser.address))
    assert [answer.status for answer in answers] == [429] * 3
    assert not asked & {"profile", "hit", "_rotate"}


async def test_database_failure_during_a_refresh_keeps_the_session(reactor, shared_dsn):
    """The only statement spends the cookie, so the cookie stays valid if it fails."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn)
    try:
        browser = await registered(running)
        database = running.service.parts.database
        original = database.run
        before = browser.token

        async def run(work, *arguments, **more):
            raise Unavailable

        database.run = run
        answer = await browser.refresh()
        database.run = original
        assert (answer.status, "set-cookie" in answer.headers) == (503, False)
        assert browser.token == before
        assert (await browser.refresh()).status == 200
    finally:
        await running.service.stopService()
