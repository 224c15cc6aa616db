"""Tests of answers that aren't the service's: pages of a Wi-Fi or a gateway, answers that are cut off, and none."""

import pytest

from tests.harness.constants import PASSWORD
from tests.pages.player import Hand, kept, opened
from tests.pages.test_play_edges import FINISH
from tests.pages.visitor import until

REFRESH = "**/api/session/refresh"
UNANSWERED = "The server can’t be reached. Nothing is lost; please try again."
# Limits of 45 seconds take half a second.
HURRY = "const { timeout } = AbortSignal; AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 90)"


def answering(visitor, pattern, status=200):
    """Answer as a Wi-Fi that wants the user to sign in, or as a gateway."""
    page = {"headers": {"Content-Type": "text/html"}, "body": "<html>Please sign in</html>"}
    visitor.context.route(pattern, lambda route: route.fulfill(status=status, **page))


@pytest.fixture
def ann(visit):
    """A player whose next page has no access token."""
    ann = visit(reduced_motion="reduce")
    ann.register()
    ann.page.goto("/replays")
    ann.page.evaluate("sessionStorage.clear()")
    return ann


def test_registration_can_be_repeated_when_its_answer_is_cut_off(visit):
    bob = visit()
    page = bob.open("/account")
    lost = []

    def lose(route):
        if lost:
            return route.continue_()
        lost.append(route.fetch())
        return route.fulfill(response=lost[0], headers={}, body=lost[0].text()[:20])

    bob.context.route("**/api/session", lose)
    page.fill("#new-name", "bob")
    page.fill("#new-password", PASSWORD)
    page.click("#new-form button.main")
    page.wait_for_selector("#new-form .refused")
    assert UNANSWERED in page.inner_text("#new-form .refused")
    page.click("#new-form button.main")
    page.wait_for_selector("#devices tbody tr")


@pytest.mark.parametrize(("query", "pattern"), [("", "/api/daily-challenge"), ("=2026-01-02", "/daily/2026-01-02")])
def test_another_deal_is_dealt_when_the_deal_of_the_day_has_no_answer(visitor, query, pattern):
    answering(visitor, f"**{pattern}")
    page = opened(visitor, f"/play?daily{query}")
    assert page.inner_text("#notice").startswith(f"The deal of the day couldn’t be loaded. {UNANSWERED}")
    assert kept(page)["day"] is None


def test_waiting_games_are_named_when_a_refresh_has_no_answer(ann):
    answering(ann, REFRESH)
    page = opened(ann, "/play?deal=42&draw=one")
    Hand(page).stock()
    page.click("#again")
    page.click("#leave button[value=leave]")
    until(page, "document.getElementById('waiting').textContent === 'Not connected: 1 game waits to be sent.'")


@pytest.mark.parametrize("status", [401, 403, 404, 407])
def test_session_stays_when_a_gateway_refuses_the_refresh(ann, status):
    answering(ann, REFRESH, status)
    page = ann.page
    page.goto("/account")
    page.wait_for_selector("#devices .refused")
    assert UNANSWERED in page.inner_text("#devices .refused")
    ann.context.unroute(REFRESH)
    page.reload()
    page.wait_for_selector("#devices tbody tr")


def test_other_tabs_go_on_when_a_refresh_gets_no_answer(ann):
    """The request is given up after 45 seconds. In this test, it is half a second."""
    ann.context.add_init_script(HURRY)
    asked = []
    ann.context.route(REFRESH, lambda route: route.continue_() if asked else asked.append(route))
    ann.page.goto("/account")
    until(ann.page, "localStorage['solisync.retry']")
    tab = ann.context.new_page()
    tab.goto("/account")
    tab.wait_for_selector("#devices tbody tr")


def test_progress_is_the_last_one_when_a_pull_gets_no_answer(ann):
    """The request is given up after 45 seconds. In this test, it is half a second."""
    opened(ann).evaluate(FINISH)
    ann.context.add_init_script(HURRY)
    ann.context.route("**/api/sync/pull", lambda route: None)
    ann.page.goto("/")
    until(ann.page, "document.querySelector('#standing dl')")
    ann.context.unroute_all()


def test_session_is_used_when_a_lease_is_of_a_clock_that_was_ahead(ann):
    """A tab was closed while it had the lease, on plain HTTP. Then the clock was set back by eight hours."""
    ann.context.add_init_script("Object.defineProperty(navigator, 'locks', {value: undefined})")
    ann.page.evaluate("localStorage['solisync.lease'] = `0.5 ${Date.now() + 8 * 3600_000}`")
    ann.page.goto("/account")
    ann.page.wait_for_selector("#devices tbody tr")
