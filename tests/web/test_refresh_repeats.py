"""Refreshes that are repeated with the same key after a lost answer (docs/protocol.md "Sessions")."""

import pytest

from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD
from tests.harness.payloads import progress_of
from tests.web.browser import Browser, registered

KEY = "a-key-of-one-refresh"


async def refresh(server, client, key=KEY, token=None):
    """Refresh without adopting the new pair."""
    body = {"refresh_token": token or client.tokens.refresh_token}
    return await server.ask("POST", "/api/auth/refresh", body=body if key is None else body | {"retry_key": key})


async def test_refresh_returns_the_same_pair_when_it_is_repeated_with_its_key(server):
    """The repeats return the pair byte for byte, and there is one successor."""
    client = await server.player("ann")
    answers = [await refresh(server, client) for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3
    assert len({answer.content for answer in answers}) == 1
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(1,)]


async def test_simultaneous_refreshes_with_one_key_return_one_pair(server):
    """One request spends the token, and all get its pair."""
    client = await server.player("ann")
    answers = await gather(8, lambda _: refresh(server, client), range(8))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert server.sql("SELECT count(*) FROM refresh_tokens") == [(1,)]


@pytest.mark.parametrize(("first", "second"), [(KEY, "the-key-of-another"), (KEY, None), (None, None), (None, KEY)])
async def test_refresh_is_refused_when_the_key_differs(server, first, second):
    """The repeat has another key, no key, or a key that the first request lacked."""
    client = await server.player("ann")
    assert (await refresh(server, client, first)).status == 200
    answer = await refresh(server, client, second)
    assert (answer.status, answer.headers["error-code"]) == (401, "unauthorized")


async def test_null_counts_as_no_key(server):
    """A client may send null."""
    client = await server.player("ann")
    body = {"refresh_token": client.tokens.refresh_token, "retry_key": None}
    assert (await server.ask("POST", "/api/auth/refresh", body=body)).status == 200
    assert server.sql("SELECT retry_digest FROM refresh_tokens") == [(None,)]


async def test_refresh_is_refused_when_its_successor_is_spent(server):
    """The session has continued since."""
    client = await server.player("ann")
    pair = (await refresh(server, client)).json
    assert (await refresh(server, client, token=pair["refresh_token"])).status == 200
    assert (await refresh(server, client)).status == 401


async def test_refresh_is_refused_when_its_session_has_ended(server):
    """Logging out ends the successor, and with it the repeats."""
    client = await server.player("ann")
    pair = (await refresh(server, client)).json
    await server.ask("POST", "/api/auth/logout", body={"refresh_token": pair["refresh_token"]})
    assert (await refresh(server, client)).status == 401


async def test_refresh_is_refused_when_it_is_repeated_a_day_later(server):
    """The clock of the database decides."""
    client = await server.player("ann")
    assert (await refresh(server, client)).status == 200
    server.sql("UPDATE refresh_tokens SET used_at = used_at - interval '24 hours'")
    assert (await refresh(server, client)).status == 401


@pytest.mark.parametrize("key", ["", "short", "x" * 65, "with a space in it", "sixteen-letters\n", "ä" * 16, 5])
async def test_key_of_a_wrong_form_is_refused(server, key):
    """The token isn't spent."""
    client = await server.player("ann")
    answer = await refresh(server, client, key)
    assert (answer.status, answer.headers["error-code"]) == (400, "bad_field")
    assert (await refresh(server, client)).status == 200


async def test_repeat_is_audited_as_a_repeat(server):
    """The log and the metric don't count it as a spent token."""
    counted = server.service.parts.metrics.registry.get_sample_value
    before = [counted(f"solisync_refresh_{name}_total") for name in ("repeats", "token_reuse")]
    client = await server.player("ann")
    for _ in range(2):
        await refresh(server, client)
    after = [counted(f"solisync_refresh_{name}_total") for name in ("repeats", "token_reuse")]
    assert [new - old for new, old in zip(after, before, strict=True)] == [1, 0]


async def test_repeat_is_refused_when_a_node_of_1_0_0_has_refreshed(server):
    """Such a node stores no key, and returns the same 401."""
    client = await server.player("ann")
    assert (await refresh(server, client)).status == 200
    server.sql("UPDATE refresh_tokens SET spent_jti = NULL, retry_digest = NULL, access_expiry_before = NULL")
    assert (await refresh(server, client)).status == 401


async def test_push_with_the_previous_access_token_counts_for_its_session(server):
    """The push may have been sent during the refresh."""
    client = await server.player("ann")
    token = client.tokens.access_token
    await server.ask("GET", "/api/sync/pull", bearer=token)
    await client.refresh()
    body = progress_of(stats__games_won=1, stats__games_played=1)
    assert (await server.ask("POST", "/api/sync/push", body=body, bearer=token)).status == 200
    (session,) = await client.sessions()
    assert server.sql("SELECT session_id::text FROM known_states") == [(session.id,)]


async def test_pull_with_the_previous_access_token_counts_for_its_session(server):
    """The reply is remembered for one session, not for all of the player's."""
    client, other = await server.player("ann"), server.client()
    token = client.tokens.access_token
    await other.login("ann", PASSWORD)
    await client.refresh()
    await server.ask("GET", "/api/sync/pull", bearer=token)
    assert server.sql("SELECT count(*) FROM known_states") == [(1,)]


async def test_list_of_sessions_marks_the_session_of_the_previous_access_token(server):
    """An access token of two refreshes ago names no session."""
    client = await server.player("ann")
    token = client.tokens.access_token
    current = []
    for _ in range(2):
        await client.refresh()
        current += [each["current"] for each in (await server.ask("GET", "/api/sessions", bearer=token)).json]
    assert current == [True, False]


def another_tab(browser):
    """Return another tab, which still sends the browser's present cookie."""
    tab = Browser(browser.server)
    tab.token = browser.token
    return tab


async def test_page_gets_the_same_session_when_it_repeats_a_refresh_with_its_key(server):
    """The cookie and the access token are the same as in the lost answer."""
    browser = await registered(server)
    tab = another_tab(browser)
    first, second = [await each.refresh({"retry_key": KEY}) for each in (browser, tab)]
    assert (first.status, second.status, first.content) == (200, 200, second.content)
    assert browser.token == tab.token


async def test_cookie_stays_when_another_tab_has_spent_it(server):
    """The other tab's reply has the new cookie, or will have it, and the session continues with that."""
    browser = await registered(server)
    tab = another_tab(browser)
    await browser.refresh({"retry_key": KEY})
    for body in (None, {"retry_key": "the-key-of-another"}):
        answer = await tab.refresh(body)
        assert (answer.status, "set-cookie" in answer.headers) == (401, False)
        assert answer.headers["www-authenticate"] == "Bearer"
    assert (await browser.refresh()).status == 200


async def test_cookie_is_cleared_when_its_successor_is_spent(server):
    """The cookie is two refreshes old."""
    browser = await registered(server)
    tab = another_tab(browser)
    for _ in range(2):
        await browser.refresh()
    assert (await tab.refresh()).status == 401
    assert tab.token is None


async def test_device_keeps_its_games_when_the_answer_of_its_refresh_is_lost(server):
    """Two devices start from 100 games and play 7 and 5; the second repeats its refresh, and pushes."""
    first, second = await server.player("ann"), server.client()
    await push(server, first.tokens.access_token, 100)
    await second.login("ann", PASSWORD)
    for client in (first, second):
        await client.pull()
    await push(server, first.tokens.access_token, 107)
    await refresh(server, second)  # the answer is lost
    pair = (await refresh(server, second)).json
    pushed = await push(server, pair["access_token"], 105)
    assert pushed.json["merged"]["stats"]["games_played"] == 112


async def push(server, token, games):
    body = progress_of(stats__games_played=games, stats__games_won=games)
    return await server.ask("POST", "/api/sync/push", body=body, bearer=token)
