"""Tests of the day's game on /play: its address, its place in the storage, and midnight."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.harness.boards import SEED
from tests.pages.player import KEY, Hand, keep, kept, opened, won_game
from tests.pages.visitor import Game, until

DAY = "2026-04-26"  # its deal is SEED
NEXT = {"date": "2026-04-27", "seed": SEED + 1, "description": "Win the deal of the day", "target_score": None,
        "max_time_secs": None}  # fmt: skip


def at(visitor, hours):
    """Set the clock of the page to some hours after the start of DAY, and the service's day to the one after it."""
    moment = datetime.fromisoformat(DAY).replace(tzinfo=UTC) + timedelta(hours=hours)
    visitor.page.clock.set_fixed_time(moment)
    visitor.context.route("**/api/daily-challenge", lambda route: route.fulfill(json=NEXT))


def test_day_has_one_address(visitor, site):
    """The address names the day, also when the deal's number or the word "daily" led there."""
    today = Game(site).call("GET", "/api/daily-challenge")
    for query in ("?daily", f"?deal={today['seed']}&draw=one", f"?seed={today['seed']}", f"?daily={today['date']}"):
        page = opened(visitor, f"/play{query}")
        page.wait_for_url(f"**/play?daily={today['date']}")
        assert kept(page)["day"]["date"] == today["date"]
        page.evaluate("localStorage.clear()")


@pytest.mark.parametrize(("hours", "counts"), [(35.9, True), (36, False)])
def test_deal_of_a_day_is_the_day_while_a_win_counts(visitor, hours, counts):
    """After 36 hours the same address is that of any deal."""
    at(visitor, hours)
    page = opened(visitor, f"/play?deal={SEED}&draw=one")
    page.wait_for_url(f"**/play?daily={DAY}" if counts else f"**/play?deal={SEED}&draw=one")
    assert page.is_visible("#goal") == counts


def test_other_deals_cost_no_request(visitor):
    opened(visitor, "/play?deal=42&draw=one")
    assert not [url for url in visitor.requested if "daily" in url]


def test_started_day_needs_no_connection(visitor, site):
    """Its goal and its moves are in the browser."""
    page = opened(visitor, f"/play?daily={DAY}")
    Hand(page).stock()
    for path in ("**/api/daily-challenge", "**/daily/*"):
        visitor.context.route(path, lambda route: route.abort())
    visitor.requested.clear()
    page = opened(visitor, f"/play?daily={DAY}")
    assert page.inner_text("#moves") == "1 move"
    assert page.inner_text("#notice") == ""
    assert not [url for url in visitor.requested if url.endswith(("/api/daily-challenge", f"/daily/{DAY}"))]


def test_day_and_another_game_are_both_kept(visitor):
    """Neither asks whether to leave the other."""
    page = opened(visitor, "/play?deal=42&draw=one")
    Hand(page).stock()
    page = opened(visitor, f"/play?daily={DAY}")
    assert not page.is_visible("#leave")
    for _ in range(2):
        Hand(page).stock()
    page = opened(visitor, "/play")
    assert (page.inner_text("#moves"), kept(page)["deal"]) == ("1 move", "42")
    page = opened(visitor, "/play?daily=" + DAY)
    assert page.inner_text("#moves") == "2 moves"


def test_new_game_keeps_the_day(visitor):
    """The other game is left only if the player agrees."""
    page = opened(visitor, f"/play?daily={DAY}")
    Hand(page).stock()
    page.click("#new")
    page.wait_for_url("**/play?deal=*")
    Hand(page).stock()
    other = kept(page)["id"]
    page = opened(visitor, f"/play?daily={DAY}")
    assert page.inner_text("#moves") == "1 move"
    page.click("#new")
    page.wait_for_selector("#leave[open]")
    page.click("#leave button[value=stay]")
    assert (kept(page)["id"], page.inner_text("#moves")) == (other, "1 move")


def test_game_that_began_before_its_day_was_known_becomes_the_days(visitor, site):
    """A friend's link of version 1.1 named the deal alone."""
    today = Game(site).call("GET", "/api/daily-challenge")
    keep(visitor.page, {"seed": today["seed"], "draw_mode": "DrawThree"}, [None, None])
    page = opened(visitor, "/play?daily")
    until(page, "document.getElementById('moves').textContent === '2 moves'")
    assert (kept(page)["day"]["date"], kept(page)["draw"]) == (today["date"], 3)
    assert page.evaluate(f"localStorage[{KEY}]") is None


def test_days_game_of_version_1_1_moves_to_its_own_place(visitor):
    """That version has one place for all games."""
    page = opened(visitor, f"/play?daily={DAY}")
    Hand(page).stock()
    page.goto("/replays")
    page.evaluate("localStorage['solisync.game'] = localStorage['solisync.day']; delete localStorage['solisync.day']")
    game = json.loads(page.evaluate("localStorage['solisync.game']"))
    page = opened(visitor, "/play")
    page.wait_for_url(f"**/play?daily={DAY}")
    assert kept(page)["id"] == game["id"]
    assert page.evaluate("localStorage['solisync.game']") is None


def test_same_deal_keeps_the_day(visitor):
    page = opened(visitor, f"/play?daily={DAY}")
    first = kept(page)["id"]
    page.click("#again")
    until(page, f"JSON.parse(localStorage['solisync.day']).id !== '{first}'")
    assert kept(page)["day"]["date"] == DAY
    assert page.url.endswith(f"/play?daily={DAY}")


def test_page_of_a_day_says_when_the_day_ends(visitor, site):
    """Over midnight it offers the new day, and its button still plays the day that it shows."""
    today = Game(site).call("GET", "/api/daily-challenge")["date"]
    page = visitor.page
    page.clock.install(time=datetime.fromisoformat(today).replace(tzinfo=UTC) + timedelta(hours=23, minutes=59))
    page = visitor.open("/daily")
    assert page.inner_text("#left") == "1 minute left"
    page.clock.fast_forward(61_000)
    assert page.inner_text("#left") == "This day is over. Go to today’s deal"
    assert page.get_attribute("#left a", "href") == "/daily"
    assert page.inner_text("#said") == "This day is over."
    assert page.get_attribute("#day .button.main", "href") == f"/play?daily={today}"


@pytest.mark.parametrize("query", ["?daily=2026-02-29", "?daily=2999-01-01", "?daily=<b>"])
def test_day_that_does_not_exist_loses_no_game(visitor, query):
    """A day to come has no deal yet."""
    page = opened(visitor, "/play?deal=42&draw=one")
    Hand(page).stock()
    page = opened(visitor, f"/play{query}")
    assert page.inner_text("#notice") == "There is no deal for this day."
    assert (page.inner_text("#moves"), kept(page)["deal"]) == ("1 move", "42")


def test_win_of_another_game_is_not_asked_about(visitor):
    """A finished game is left without a question."""
    keep(visitor.page, *won_game(0), day=None)
    page = opened(visitor, f"/play?daily={DAY}")
    assert not page.is_visible("#leave")
    assert kept(page)["day"]["date"] == DAY
