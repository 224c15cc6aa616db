"""Tests of sessions in browsers: several tabs, interrupted pages, used and expired tokens, and wrong clocks."""

import json
import urllib.request

import jwt
import pytest

from tests.harness.constants import PASSWORD, PATIENCE, SECRET
from tests.harness.postgres import run_sql
from tests.pages.visitor import until

REFRESH = "**/api/session/refresh"
DAY = 86_400_000
EXPIRE = """token => {
  const grant = JSON.parse(sessionStorage.solisync);
  sessionStorage.solisync = JSON.stringify({...grant, token});
}"""
AGE = """hours => {
  const grant = JSON.parse(sessionStorage.solisync);
  sessionStorage.solisync = JSON.stringify({...grant, since: grant.since - hours * 3600_000});
}"""
GRANT = "JSON.parse(sessionStorage.solisync ?? null)"


def expired(page):
    """Replace the access token of a tab by an expired one."""
    token = page.evaluate(GRANT)["token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    page.evaluate(EXPIRE, jwt.encode({**claims, "exp": 1_700_000_000}, SECRET, "HS256"))


@pytest.fixture
def ann(visit):
    """A player who has registered, with a list of her browser's refreshes."""
    ann = visit()
    ann.register()
    ann.refreshes = []
    ann.context.on("request", lambda request: request.url.endswith("/refresh") and ann.refreshes.append(request))
    return ann


def is_signed_in(visitor, page=None):
    page = page or visitor.page
    page.goto("/account")
    page.wait_for_selector("#in:not([hidden])")
    until(page, "document.querySelector('#devices tbody tr, #out:not([hidden])')")
    return page.is_hidden("#out")


def test_page_loads_cost_no_refresh(ann):
    """A new tab gets the token from another tab."""
    for path in ("/", "/replays", "/leaderboard", "/daily", "/account"):
        ann.open(path)
    tab = ann.context.new_page()
    tab.goto("/account")
    tab.wait_for_selector("#devices tbody tr")
    assert ann.refreshes == []
    keys = ann.page.evaluate("Object.keys(localStorage).sort().join()")
    # localStorage has names and ids of accounts and the streak, but no token
    assert keys == "solisync,solisync.accounts,solisync.streak,solisync.waiting"


def test_new_tab_is_signed_in_by_the_cookie(ann):
    """The closed tab has lost its sessionStorage, but the cookie lasts for 30 days."""
    ann.page.close()
    ann.page = ann.context.new_page()
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 1


def test_expired_token_is_renewed_without_notice(ann):
    expired(ann.page)
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 1


def test_token_is_renewed_after_half_its_life(ann):
    ann.page.evaluate(AGE, 11)
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 0
    ann.page.evaluate(AGE, 2)
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 1


@pytest.mark.parametrize("status", [429, 503, None])
def test_token_is_used_further_when_its_renewal_fails(ann, status):
    """The token is still valid for almost half of its life."""
    ann.page.evaluate(AGE, 13)
    answer = {"status": status, "headers": {"Retry-After": "7"}, "json": {"error": "later"}}
    ann.context.route(REFRESH, lambda route: route.fulfill(**answer) if status else route.abort())
    assert is_signed_in(ann)


@pytest.mark.parametrize("days", [-1, 1])
def test_browser_clock_may_be_wrong_by_a_day(ann, days):
    ann.page.add_init_script(f"{{const now = Date.now; Date.now = () => now() + {days * DAY}}}")
    assert is_signed_in(ann)
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 1


def test_two_tabs_refresh_without_a_conflict(ann):
    """The tokens expire at the same time. The tabs use the cookie one after the other, or share a token."""
    other = ann.context.new_page()
    other.goto("/account")
    other.wait_for_selector("#devices tbody tr")
    for page in (ann.page, other):
        expired(page)
        page.goto("/web/icon.svg")  # forgets what is in memory
    for page in (ann.page, other):
        page.goto("/replays", wait_until="commit")
    call = """async () => (await web('api.js')).readOwn('/api/me').then(me => window.answered = me.username)"""
    for page in (ann.page, other):
        page.evaluate(f"void ({call})()")
    for page in (ann.page, other):
        assert until(page, "window.answered") == "ann"
    assert len(ann.refreshes) == 1
    assert ann.page.evaluate(GRANT)["token"] == other.evaluate(GRANT)["token"]
    assert is_signed_in(ann)


def test_restored_window_of_tabs_stays_signed_in(ann):
    """Six tabs load at the same time without a token. Most of them get one from another tab, and no refresh fails."""
    tabs = [ann.context.new_page() for _ in range(6)]
    ann.page.close()
    for tab in tabs:
        tab.evaluate("url => location.assign(url)", f"{ann.site}/account")
    for tab in tabs:
        tab.wait_for_selector("#devices tbody tr")
    assert len(ann.refreshes) < len(tabs)
    assert {request.response().status for request in ann.refreshes} == {200}


def cookie(visitor):
    """Return the visitor's refresh token."""
    (found,) = visitor.context.cookies()
    return found["value"]


def keys(visitor):
    """Return the retry keys of the visitor's refreshes."""
    return [request.post_data_json["retry_key"] for request in visitor.refreshes]


def refresh_by_other(visitor, token, key):
    """Refresh as another program with the cookie would, and return the new cookie."""
    headers = {"Content-Type": "application/json", "Origin": visitor.site, "Cookie": f"solisync={token}"}
    body = json.dumps({"retry_key": key}).encode()
    request = urllib.request.Request(f"{visitor.site}/api/session/refresh", body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.headers["Set-Cookie"].partition("=")[2].partition(";")[0]


def lose_answers(visitor, count):
    """Send the next refreshes to the server and drop their answers."""
    lost = []

    def lose(route):
        if len(lost) == count:
            return route.continue_()
        lost.append(refresh_by_other(visitor, cookie(visitor), route.request.post_data_json["retry_key"]))
        return route.abort()

    visitor.context.route(REFRESH, lose)
    return lost


def sessions(dsn):
    [(count,)] = run_sql(dsn, "SELECT count(*) FROM refresh_tokens")
    return count


def test_page_can_be_left_during_a_refresh(ann, running):
    """The next page repeats the request, and both get the same cookie."""
    before = cookie(ann)
    ann.page.evaluate(AGE, 13)
    slow = {"offline": False, "latency": 600, "downloadThroughput": -1, "uploadThroughput": -1}
    ann.context.new_cdp_session(ann.page).send("Network.emulateNetworkConditions", slow)
    ann.page.goto("/replays", wait_until="commit")  # the header of the page requests the player
    until(ann.page, "localStorage['solisync.retry']")
    ann.page.wait_for_timeout(100)
    assert cookie(ann) == before
    assert is_signed_in(ann)
    assert len(set(keys(ann))) == 1
    assert cookie(ann) != before
    assert ann.page.evaluate("localStorage['solisync.retry'] === undefined")
    expired(ann.page)
    assert is_signed_in(ann)
    assert len(set(keys(ann))) == 2
    assert sessions(running.dsn) == 1


@pytest.mark.parametrize("count", [1, 3])
def test_lost_answers_of_refreshes_keep_the_session(ann, running, count):
    """The player reloads the page until an answer arrives, which continues the session of the first request."""
    lost = lose_answers(ann, count)
    expired(ann.page)
    for _ in range(count):
        ann.page.goto("/account")
        until(ann.page, "document.querySelector('.refused')")
    assert is_signed_in(ann)
    assert set(lost) == {cookie(ann)}
    assert len(lost) == count
    assert len(set(keys(ann))) == 1
    assert sessions(running.dsn) == 1


def test_refresh_with_a_lost_answer_is_repeated_by_another_tab(ann, running):
    """The tabs share the retry key."""
    other = ann.context.new_page()
    other.goto("/account")
    other.wait_for_selector("#devices tbody tr")
    lost = lose_answers(ann, 1)
    for page in (ann.page, other):
        expired(page)
        page.goto("/web/icon.svg")  # forgets what is in memory
    ann.page.goto("/account")
    until(ann.page, "document.querySelector('.refused')")
    assert is_signed_in(ann, other)
    assert lost == [cookie(ann)]
    assert sessions(running.dsn) == 1
    assert is_signed_in(ann)


def test_cookie_used_by_another_tab_keeps_the_session(ann, running):
    """The server leaves the used cookie alone, and the page retries with the next one, which arrives a moment later."""
    successor = refresh_by_other(ann, cookie(ann), "k" * 16)

    def arrive(route):
        route.continue_()
        if len(ann.refreshes) == 2:
            ann.context.add_cookies([{**ann.context.cookies()[0], "value": successor}])

    ann.context.route(REFRESH, arrive)
    expired(ann.page)
    assert is_signed_in(ann)
    assert [request.response().status for request in ann.refreshes] == [401, 401, 200]
    assert sessions(running.dsn) == 1


def test_signing_out_after_a_lost_answer_ends_the_new_session(ann, running):
    """The cookie of the new session could otherwise arrive at a computer that the player has left."""
    lost = lose_answers(ann, 1)
    ann.page.evaluate(AGE, 13)
    ann.page.reload()
    until(ann.page, "localStorage['solisync.retry']")
    ann.settle()
    assert len(lost) == 1
    ann.page.click("#sign-out")
    ann.page.wait_for_selector("#out:not([hidden])")
    assert sessions(running.dsn) == 0


def test_missing_cookie_signs_out_with_a_message(ann):
    """The access token has expired and can't be renewed. The page explains this and links to the sign-in."""
    ann.context.clear_cookies()
    expired(ann.page)
    page = ann.open("/leaderboard")
    page.wait_for_selector("#asked:not([hidden])")
    assert page.inner_text("#me") == "Sign in"


def test_signing_out_affects_all_tabs(ann):
    other = ann.context.new_page()
    other.goto("/replays")
    ann.page.click("#sign-out")
    ann.page.wait_for_selector("#out:not([hidden])")
    until(other, "document.getElementById('me').textContent === 'Sign in'")
    assert ann.context.cookies() == []


def test_failed_sign_out_is_reported(ann):
    ann.context.route("**/api/session", lambda route: route.abort())
    ann.page.click("#sign-out")
    ann.page.wait_for_selector("#out-refused .refused")
    ann.context.unroute("**/api/session")
    ann.page.click("#out-refused button")
    ann.page.wait_for_selector("#out:not([hidden])")


@pytest.mark.parametrize("form", ["new", "in"])
def test_repeated_sign_in_gets_the_session_of_the_lost_answer(visit, ann, form):
    """Pressing the button again neither finds the name taken nor begins another session."""
    bob = visit()
    page = bob.open("/account")
    bodies = []

    def lose(route):
        bodies.append(route.request.post_data_json)
        if len(bodies) == 1:
            route.fetch()
            return route.abort()
        return route.continue_()

    bob.context.route("**/api/session", lose)
    name = "bob" if form == "new" else "ann"
    page.fill(f"#{form}-name", name)
    page.fill(f"#{form}-password", PASSWORD)
    page.click(f"#{form}-form button.main")
    page.wait_for_selector(f"#{form}-form .refused")
    page.click(f"#{form}-form button.main")
    page.wait_for_selector("#devices tbody tr")
    assert page.locator("#devices tbody tr").count() == (1 if form == "new" else 2)
    assert bodies[0] == bodies[1]
    assert page.evaluate("sessionStorage['solisync.signing'] ?? null") is None


AWAIT_RETRY = "localStorage['solisync.aside'] = String(Date.now() - 3600_000)"


def test_token_of_a_deleted_player_signs_out(ann):
    """The cookie goes when the browser tries it again, as the service may have run on another database."""
    token = ann.page.evaluate(GRANT)["token"]
    answer = ann.context.request.delete("/api/account", headers={"Authorization": f"Bearer {token}"})
    assert answer.ok
    ann.page.goto("/account")
    ann.page.wait_for_selector("#out:not([hidden])")
    assert len(ann.context.cookies()) == 1
    ann.page.evaluate(AWAIT_RETRY)
    ann.page.goto("/replays")
    until(ann.page, "!localStorage['solisync.aside']")
    assert ann.context.cookies() == []
    assert ann.page.evaluate("localStorage.solisync ?? null") is None


def test_session_comes_back_after_the_service_has_run_on_another_database(ann):
    """The next page that is opened a minute later tries the cookie again, once."""
    gone = {"status": 404, "headers": {"Error-Code": "user_not_found"}, "json": {"error": "user not found"}}
    ann.context.route("**/api/sessions", lambda route: route.fulfill(**gone))
    ann.page.goto("/account")
    ann.page.wait_for_selector("#out:not([hidden])")
    ann.context.unroute("**/api/sessions")
    ann.open("/replays")
    assert ann.refreshes == []
    ann.page.evaluate(AWAIT_RETRY)
    ann.page.goto("/replays")
    until(ann.page, "localStorage.solisync === 'ann'")
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 1


FILL_STORAGE = """() => {
  let size = 2 ** 22;
  for (let count = 0; size; ) {
    try { localStorage.setItem(`full.${count++}`, "x".repeat(size)); } catch { size >>= 1; }
  }
}"""


def test_full_local_storage_keeps_the_player_signed_in(ann):
    """What was stored before can still be read."""
    ann.page.evaluate(FILL_STORAGE)
    assert is_signed_in(ann)


def test_sign_in_that_can_not_be_stored_is_said_to_end_with_the_page(visit, ann):
    """A full localStorage has no room for the name."""
    bob = visit()
    bob.open("/account")
    bob.page.evaluate(FILL_STORAGE)
    bob.page.fill("#in-name", "ann")
    bob.page.fill("#in-password", PASSWORD)
    bob.page.click("#in-form button.main")
    bob.page.wait_for_selector("#in:not([hidden])")
    assert bob.page.is_visible("#insecure")


def test_tabs_use_a_lease_without_locks(visit):
    """Browsers have no navigator.locks over plain HTTP."""
    ann = visit()
    ann.context.add_init_script("Object.defineProperty(navigator, 'locks', {value: undefined})")
    ann.register()
    refreshes = []
    ann.context.on("request", lambda request: request.url.endswith("/refresh") and refreshes.append(request))
    tabs = [ann.context.new_page() for _ in range(4)]
    ann.page.close()
    for tab in tabs:
        tab.evaluate("url => location.assign(url)", f"{ann.site}/account")
    for tab in tabs:
        tab.wait_for_selector("#devices tbody tr")
    assert len(refreshes) == 1
    assert until(tabs[0], "!localStorage['solisync.lease']")


def test_missing_storage_is_reported(visit):
    """The player can still sign in, for as long as the page is open."""
    ann = visit()
    ann.context.add_init_script(
        "for (const name of ['localStorage', 'sessionStorage'])"
        " Object.defineProperty(window, name, {get() { throw new DOMException('no', 'SecurityError') }})"
    )
    page = ann.open("/account")
    assert "HTTPS" in page.inner_text("#insecure")
    page.fill("#new-name", "ann")
    page.fill("#new-password", PASSWORD)
    page.click("#new-form button.main")
    page.wait_for_selector("#devices tbody tr")
