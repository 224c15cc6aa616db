"""Nobody is signed out who should not be: tabs, pages left too early, tokens spent and expired, clocks that are off."""

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
    """Make the access token in a tab one that has expired."""
    token = page.evaluate(GRANT)["token"]
    claims = jwt.decode(token, options={"verify_signature": False})
    page.evaluate(EXPIRE, jwt.encode({**claims, "exp": 1_700_000_000}, SECRET, "HS256"))


@pytest.fixture
def ann(visit):
    """A player who has registered in her browser, and the refreshes of it."""
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
    """Nor does a new tab, while another has the token."""
    for path in ("/", "/replays", "/leaderboard", "/daily", "/account"):
        ann.open(path)
    tab = ann.context.new_page()
    tab.goto("/account")
    tab.wait_for_selector("#devices tbody tr")
    assert ann.refreshes == []
    assert ann.page.evaluate("Object.keys(localStorage).join()") == "solisync"  # the name, and no token


def test_who_comes_back_later_is_still_signed_in(ann):
    """The tab is closed, and so is its sessionStorage; the cookie is there for 30 days."""
    ann.page.close()
    ann.page = ann.context.new_page()
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 1


def test_an_expired_token_is_renewed_unseen(ann):
    expired(ann.page)
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 1


def test_after_half_its_life_a_token_is_renewed(ann):
    ann.page.evaluate(AGE, 11)
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 0
    ann.page.evaluate(AGE, 2)
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 1


@pytest.mark.parametrize("status", [429, 503, None])
def test_what_cannot_be_renewed_yet_goes_on(ann, status):
    """With half of its life left, the token is good enough."""
    ann.page.evaluate(AGE, 13)
    answer = {"status": status, "headers": {"Retry-After": "7"}, "json": {"error": "later"}}
    ann.context.route(REFRESH, lambda route: route.fulfill(**answer) if status else route.abort())
    assert is_signed_in(ann)


@pytest.mark.parametrize("days", [-1, 1])
def test_clocks_may_be_off_by_a_day(ann, days):
    ann.page.add_init_script(f"{{const now = Date.now; Date.now = () => now() + {days * DAY}}}")
    assert is_signed_in(ann)
    assert is_signed_in(ann)
    assert len(ann.refreshes) == 1


def test_two_tabs_refresh_once(ann):
    """Both find their token expired at the same moment; they use the cookie one after the other, or share a token."""
    other = ann.context.new_page()
    other.goto("/account")
    other.wait_for_selector("#devices tbody tr")
    for page in (ann.page, other):
        expired(page)
        page.goto("/web/icon.svg")  # forgets what is in memory
    for page in (ann.page, other):
        page.goto("/replays", wait_until="commit")
    call = """async () => (await import('/web/api.js')).readOwn('/api/me').then(me => window.answered = me.username)"""
    for page in (ann.page, other):
        page.evaluate(f"void ({call})()")
    for page in (ann.page, other):
        assert until(page, "window.answered") == "ann"
    assert len(ann.refreshes) == 1
    assert ann.page.evaluate(GRANT)["token"] == other.evaluate(GRANT)["token"]
    assert is_signed_in(ann)


def test_a_restored_window_of_tabs_stays_signed_in(ann):
    """Six tabs at once, none with a token: what one gets it hands to the others, or to most on a busy machine."""
    tabs = [ann.context.new_page() for _ in range(6)]
    ann.page.close()
    for tab in tabs:
        tab.evaluate("url => location.assign(url)", f"{ann.site}/account")
    for tab in tabs:
        tab.wait_for_selector("#devices tbody tr")
    assert len(ann.refreshes) < len(tabs)
    assert {request.response().status for request in ann.refreshes} == {200}


def cookie(visitor):
    """The visitor's refresh token."""
    (found,) = visitor.context.cookies()
    return found["value"]


def keys(visitor):
    """The retry keys of the visitor's refreshes."""
    return [request.post_data_json["retry_key"] for request in visitor.refreshes]


def refresh_by_other(visitor, token, key):
    """Refresh as another program does that has the cookie; returns the new one."""
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


def test_a_page_can_be_left_in_the_middle_of_a_refresh(ann, running):
    """The next page repeats the request, and both get the same cookie."""
    before = cookie(ann)
    ann.page.evaluate(AGE, 13)
    slow = {"offline": False, "latency": 600, "downloadThroughput": -1, "uploadThroughput": -1}
    ann.context.new_cdp_session(ann.page).send("Network.emulateNetworkConditions", slow)
    ann.page.goto("/replays", wait_until="commit")  # whose header asks for the player
    until(ann.page, "localStorage['solisync.retry']")
    ann.page.wait_for_timeout(100)
    assert cookie(ann) == before
    assert is_signed_in(ann)
    assert len(set(keys(ann))) == 1
    assert cookie(ann) != before
    assert ann.page.evaluate("Object.keys(localStorage).join()") == "solisync"
    expired(ann.page)
    assert is_signed_in(ann)
    assert len(set(keys(ann))) == 2
    assert sessions(running.dsn) == 1


@pytest.mark.parametrize("count", [1, 3])
def test_lost_answers_of_refreshes_sign_nobody_out(ann, running, count):
    """The player reloads the page until an answer arrives: it has the session of the first request."""
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


def test_a_lost_answer_in_one_tab_is_repeated_by_another(ann, running):
    """The tabs share the key."""
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


def test_a_cookie_that_another_tab_has_spent_is_not_the_end(ann, running):
    """The server leaves it alone, and the page tries the next one, which arrives a moment later."""
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
    """Otherwise its cookie could still arrive, at a computer that the player has left."""
    lost = lose_answers(ann, 1)
    ann.page.evaluate(AGE, 13)
    ann.page.reload()
    until(ann.page, "localStorage['solisync.retry']")
    ann.settle()
    assert len(lost) == 1
    ann.page.click("#sign-out")
    ann.page.wait_for_selector("#out:not([hidden])")
    assert sessions(running.dsn) == 0


def test_a_spent_token_signs_out_with_a_word(ann):
    """The cookie is gone and the token expired: the page says so, and leads to where it can be mended."""
    ann.context.clear_cookies()
    expired(ann.page)
    page = ann.open("/leaderboard")
    page.wait_for_selector("#asked:not([hidden])")
    assert page.inner_text("#me") == "Sign in"


def test_signing_out_is_for_all_tabs(ann):
    other = ann.context.new_page()
    other.goto("/replays")
    ann.page.click("#sign-out")
    ann.page.wait_for_selector("#out:not([hidden])")
    until(other, "document.getElementById('me').textContent === 'Sign in'")
    assert ann.context.cookies() == []


def test_a_failed_sign_out_says_so(ann):
    ann.context.route("**/api/session", lambda route: route.abort())
    ann.page.click("#sign-out")
    ann.page.wait_for_selector("#out-refused .refused")
    ann.context.unroute("**/api/session")
    ann.page.click("#out-refused button")
    ann.page.wait_for_selector("#out:not([hidden])")


def test_a_deleted_players_token_signs_out(ann):
    token = ann.page.evaluate(GRANT)["token"]
    answer = ann.context.request.delete("/api/account", headers={"Authorization": f"Bearer {token}"})
    assert answer.ok
    ann.page.goto("/account")
    ann.page.wait_for_selector("#out:not([hidden])")
    assert ann.context.cookies() == []


def test_without_locks_a_lease_does(visit):
    """As on plain HTTP, where browsers have no navigator.locks."""
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


def test_without_storage_the_page_says_so(visit):
    """And one can still sign in, for as long as the page is open."""
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
