"""Tests of the way from one game to the next on /play: no game is lost, and none counts twice."""

import json

import pytest

from tests.pages.player import DAY_KEY, JOURNALS, Hand, choose, journals, keep, kept, opened, won_game
from tests.pages.visitor import until

MOVES = "document.getElementById('moves').textContent"
NOTICE = "document.getElementById('notice').textContent"
INERT = "document.getElementById('board').inert"
# Enters the stored game as a page does that is left before it has stored the next deal.
LEAVE = """async (key) => {
  const { enter } = await web("journal.js");
  const { id, draw } = JSON.parse(localStorage[key]);
  await enter({ id, won: false, score: 0, seconds: 9, draw }, new Date());
}"""
UNSAVED = "This game can’t be saved yet. Please try again later."


def leave(page, button="#new"):
    page.click(button)
    page.click("#leave button[value=leave]")


def left(visitor, path, key="solisync.game"):
    """Begin a game, and leave it just before the page is left."""
    page = opened(visitor, path)
    Hand(page).stock()
    until(page, f"{MOVES} === '1 move'")
    page.goto("/replays")
    page.evaluate(LEAVE, key)
    return page


def holding(visitor, pattern):
    """Hold all requests to an address back. Return the function that lets them go."""
    held = []
    visitor.context.route(pattern, lambda route: held.append(route))

    def go():
        while held:
            held.pop().continue_()
        visitor.context.unroute(pattern)

    return go


def test_next_deal_comes_when_the_service_does_not_answer(visit):
    ann = visit(reduced_motion="reduce")
    ann.register()
    page = opened(ann, "/play?deal=42&draw=one")
    ann.settle()
    Hand(page).stock()
    ann.context.route("**/api/games", lambda route: None)
    leave(page, "#again")
    until(page, f"{MOVES} === '0 moves' && !{INERT}", 5)
    assert journals(page, f"{JOURNALS}.of.ann.games.length") == 1
    ann.context.unroute_all()


def test_left_game_is_over_when_the_next_deal_is_searched(visit):
    """The game ignores its board and the keys."""
    visitor = visit(reduced_motion="reduce")
    go = holding(visitor, "**/search.js")
    page = opened(visitor, "/play?deal=42&draw=one")
    Hand(page).stock()
    leave(page)
    until(page, f"{NOTICE}.startsWith('Looking for a deal')")
    Hand(page).stock()
    page.keyboard.press("u")
    assert page.inner_text("#moves") == "1 move"
    page.click("#notice button")
    until(page, f"{MOVES} === '0 moves' && !{INERT}")
    go()


def test_board_keeps_the_focus_when_the_next_deal_comes(visitor):
    page = opened(visitor, "/play?deal=42&draw=one")
    page.keyboard.press("Tab")
    page.focus("#board [tabindex='0']")
    page.keyboard.press("s")
    page.keyboard.press("Enter")
    page.keyboard.press("n")
    page.focus("#leave button[value=leave]")
    page.keyboard.press("Enter")
    until(page, f"{MOVES} === '0 moves'")
    until(page, "document.getElementById('board').contains(document.activeElement)")


@pytest.mark.parametrize("path", ["/play", "/play?daily"])
def test_deal_of_the_day_is_dealt_again_when_its_game_was_left(visitor, path):
    page = left(visitor, "/play?daily", "solisync.day")
    before = json.loads(page.evaluate("localStorage['solisync.day']"))
    opened(visitor, path)
    until(page, f"JSON.parse(localStorage[{DAY_KEY}]).id !== '{before['id']}'")
    assert "daily" in page.url
    after = kept(page)
    assert (after["deal"], after["day"], after["moves"]) == (before["deal"], before["day"], "")


def test_left_game_counts_once_when_a_link_opens_another_deal(visitor):
    page = left(visitor, "/play?deal=777&draw=one")
    page.goto("/play?deal=888&draw=one")
    page.wait_for_selector("#leave[open]")
    until(page, "!location.search.includes('777')")  # the page has found that the game was left
    page.click("#leave button[value=leave]")
    until(page, "location.search.includes('888')")
    assert journals(page, f"{JOURNALS}.known.length") == 1


def test_deal_of_a_link_stays_when_a_search_ends_later(visitor):
    """The page searches for a deal instead of the game that was left."""
    page = left(visitor, "/play?deal=777&draw=one")
    go = holding(visitor, "**/search.js")
    page.goto("/play?deal=888&draw=one")
    page.wait_for_selector("#leave[open]")
    until(page, f"{NOTICE}.startsWith('Looking for a deal')")
    page.click("#leave button[value=leave]")
    until(page, "location.search.includes('888')")
    go()
    visitor.settle()
    page.wait_for_timeout(500)
    assert kept(page)["deal"] == "888"


@pytest.mark.parametrize("won", [True, False])
def test_game_stays_when_the_page_can_not_store_it(visit, won):
    """The network is gone after the first cards, before the module for finished games is loaded."""
    visitor = visit(reduced_motion="reduce")
    page = visitor.page
    replay, moves = won_game()
    keep(page, replay, moves[:-1] if won else moves[:10])
    visitor.context.route("**/results.js", lambda route: route.abort())
    opened(visitor)
    if won:
        Hand(page).drag(moves[-1])
        until(page, f"{NOTICE} === '{UNSAVED}'")
    before = kept(page)["id"]
    for connected in (False, True):
        page.click("#new")
        if not won:
            page.click("#leave button[value=leave]")
        if connected:
            until(page, f"{MOVES} === '0 moves'")
        else:
            until(page, f"{NOTICE} === '{UNSAVED}' && !{INERT}")
            assert kept(page)["id"] == before
            visitor.context.unroute("**/results.js")
    assert journals(page, f"{JOURNALS}.of[''].games.map(({{ id, won }}) => [id, won])") == [[before, won]]


def test_win_stays_when_a_link_opens_another_deal_and_the_page_can_not_store_it(visitor):
    page = visitor.page
    keep(page, *won_game())
    before = page.evaluate("localStorage['solisync.game']")
    visitor.context.route("**/results.js", lambda route: route.abort())
    opened(visitor, "/play?deal=888&draw=one")
    until(page, f"{NOTICE} === '{UNSAVED}'")
    assert kept(page)["id"] == json.loads(before)["id"]


def test_held_key_begins_one_game(visitor):
    page = opened(visitor)
    visitor.settle()
    choose(page, winnable=False)
    page.evaluate("""() => {
      window.begun = 0;
      const { replaceState } = history;
      history.replaceState = (...given) => { window.begun += 1; replaceState.apply(history, given); };
    }""")
    for _ in range(5):
        page.keyboard.down("n")
    page.keyboard.up("n")
    assert page.evaluate("window.begun") == 1
