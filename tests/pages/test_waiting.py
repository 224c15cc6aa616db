"""Tests of games that wait: each page sends them as soon as there is a connection, and names them until then."""

import pytest

from tests.pages.player import opened, until_journals, won_game
from tests.pages.visitor import Game, until

PAGES = ("/", "/daily", "/replays", "/leaderboard", "/account", "/players/ann")
WIN = """async (replay) => {
  const { enter } = await web("journal.js");
  const { final_score: score, time_seconds: seconds } = replay;
  await enter({ id: crypto.randomUUID(), won: true, score, seconds, draw: 1, replay }, new Date());
}"""
WAITS = "(document.getElementById('waits')?.innerText ?? '')"
CODE = ("client.js", "outbox.js", "waiting.js")


def code_of(visitor):
    """Return the files of the client that the visitor's pages have loaded so far."""
    return [url for url in visitor.requested if url.endswith(CODE)]


def waiting(visit):
    """Return a visitor with a win that has found no connection, on a page that doesn't send."""
    ann = visit()
    ann.register()
    Game(ann.site, login=True).seen_as("ann")
    opened(ann)
    ann.settle()
    for route in ("**/api/games", "**/api/replays"):
        ann.context.route(route, lambda route: route.abort())
    page = ann.open("/replays")
    page.evaluate(WIN, won_game(2)[0])
    return ann


@pytest.mark.parametrize("path", PAGES)
def test_page_sends_a_win_as_soon_as_there_is_a_connection(visit, site, path):
    """The page says what waits until then."""
    ann = waiting(visit)
    page = ann.page
    page.goto(path)
    until(page, f"{WAITS}.startsWith('Not connected: 1 win waits to be sent.')")
    for route in ("**/api/games", "**/api/replays"):
        ann.context.unroute(route)
    ann.context.set_offline(True)
    ann.context.set_offline(False)
    until(page, f"{WAITS} === '' && document.getElementById('said').textContent === 'All games are sent.'")
    game = Game(site, login=True)
    assert game.call("GET", "/api/sync/pull")["merged"]["stats"]["games_won"] == 1
    assert len(game.call("GET", "/api/me/replays")["replays"]) == 1


def test_page_that_is_open_sends_what_another_tab_has_stored(visit, site):
    """When the win is stored, the page has none of the client's code. It loads that when the connection returns."""
    ann = visit()
    ann.register()
    ann.open("/replays")
    assert code_of(ann) == []
    ann.context.route("**/api/games", lambda route: route.abort())
    other = ann.context.new_page()
    other.goto("/replays")
    other.evaluate(WIN, won_game(2)[0])
    other.close()
    ann.context.unroute("**/api/games")
    ann.context.set_offline(True)
    ann.context.set_offline(False)
    until_journals(ann.page, "(await (await web('journal.js')).journals()).of.ann?.games.length === 0")
    assert Game(site, login=True).call("GET", "/api/sync/pull")["merged"]["stats"]["games_won"] == 1


@pytest.mark.parametrize("path", PAGES)
def test_page_loads_nothing_of_the_client_when_nothing_waits(visit, path):
    """A look at the browser's storage suffices, also after a win that was sent."""
    ann = waiting(visit)
    for route in ("**/api/games", "**/api/replays"):
        ann.context.unroute(route)
    until_journals(opened(ann), "(await (await web('journal.js')).journals()).of.ann.wins.length === 0")
    until(ann.page, "localStorage['solisync.waiting'] === ''")
    ann.requested.clear()
    ann.open(path)
    assert code_of(ann) == []


def test_page_sends_waiting_games_when_no_note_names_them(visit, site):
    """A version before has stored the win, and no note."""
    ann = waiting(visit)
    for route in ("**/api/games", "**/api/replays"):
        ann.context.unroute(route)
    ann.page.evaluate("localStorage.removeItem('solisync.waiting')")
    page = ann.open("/leaderboard")
    until_journals(page, "(await (await web('journal.js')).journals()).of.ann.wins.length === 0")
    assert Game(site, login=True).call("GET", "/api/sync/pull")["merged"]["stats"]["games_won"] == 1


def test_games_of_another_player_load_nothing_of_the_client(visit, site):
    """The games wait until their player signs in."""
    Game(site, "bob")
    ann = waiting(visit)
    ann.open("/account").click("#sign-out")
    ann.page.click("#unsent button[value=leave]")
    ann.page.wait_for_selector("#out:not([hidden])")
    ann.sign_in("bob")
    ann.requested.clear()
    ann.open("/replays")
    assert code_of(ann) == []


def test_signing_in_sends_what_waits_for_the_player(visit, site):
    """The page to sign in sends it; no other page need be opened."""
    ann = waiting(visit)
    ann.open("/account").click("#sign-out")
    ann.page.click("#unsent button[value=leave]")
    ann.page.wait_for_selector("#out:not([hidden])")
    for route in ("**/api/games", "**/api/replays"):
        ann.context.unroute(route)
    ann.sign_in()
    until_journals(ann.page, "(await (await web('journal.js')).journals()).of.ann.wins.length === 0")
    assert Game(site, login=True).call("GET", "/api/sync/pull")["merged"]["stats"]["games_won"] == 1
