"""Tests of the home page: the game to continue, and statistics of this browser's games and of the account."""

from tests.pages.player import Hand, keep, opened, until_journals, until_stored, won_game
from tests.pages.visitor import until

FACTS = """[...document.querySelectorAll("#standing dl > div")]
  .map((fact) => [...fact.children].map((each) => each.textContent))"""


def facts(page):
    """Return the statistics on the page, by name."""
    until(page, "document.querySelector('#standing dl')")
    return dict(page.evaluate(FACTS))


def win_of(visitor):
    """Win a game, and return the page."""
    replay, moves = won_game()
    keep(visitor.page, replay, moves[:-1])
    page = opened(visitor)
    Hand(page).drag(moves[-1])
    until_stored(page, 1)
    return page


def test_home_leads_to_the_game_first(visitor):
    """The only primary button plays. A visitor who has never played loads no journal."""
    page = visitor.open("/")
    assert [button.inner_text() for button in page.locator("a.button.main").all()] == ["Play"]
    assert page.get_attribute("#play", "href") == "/play"
    assert page.is_hidden("#statistics")
    assert not [url for url in visitor.requested if "journal.js" in url]


def test_home_offers_to_continue_a_game(visitor):
    """A finished game, or one without moves, isn't offered. Moves that were undone don't count."""
    replay, moves = won_game()
    keep(visitor.page, replay, moves[:41], undos=[41])
    assert visitor.open("/").inner_text("#play") == "Resume game"
    keep(visitor.page, replay, moves[:1], undos=[1])
    assert visitor.open("/").inner_text("#play") == "Play"
    keep(visitor.page, replay, [])
    assert visitor.open("/").inner_text("#play") == "Play"
    win_of(visitor)
    assert visitor.open("/").inner_text("#play") == "Play"


def test_statistics_are_of_this_browser_until_the_player_signs_up(visitor):
    """Adding the games to the account moves the statistics there."""
    page = win_of(visitor)
    page.click("#statistics summary")
    here = facts(page)
    assert here["Games won"] == "1 of 1"
    assert here["Win rate"] == "100 %"
    assert here["Win streak"] == "1, best 1"
    assert here["Fastest win"] == here["Average win"]
    assert here["Won drawing one"] != here["Won drawing three"]
    assert facts(visitor.open("/")) == here
    visitor.register()
    assert "No games yet" in visitor.open("/").inner_text("#standing")
    page = opened(visitor)
    page.get_by_role("button", name="Add").click()
    until_journals(page, "!(await (await web('journal.js')).journals()).of.ann.games.length")
    of_account = facts(visitor.open("/"))
    assert {name: of_account[name] for name in here} == here
    assert of_account["Level"] == "0, 350 points to the next"
    assert of_account["Goals of this week"].startswith("1 of 5 wins · ")
    page = opened(visitor)
    page.click("#statistics summary")
    assert facts(page) == of_account
    assert page.evaluate("web('journal.js').then(async ({ journals }) => (await journals()).of[''])") is None
