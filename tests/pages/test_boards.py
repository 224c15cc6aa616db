"""The boards: names as they were chosen, one's own row, the deal of the day."""

from tests.checking.uploads import game
from tests.harness.boards import check
from tests.pages.visitor import Game, until


def test_names_full_of_markup_are_names(visitor, site):
    """On boards, in lists and in the form; bidi marks can't be chosen."""
    ann = Game(site)
    ann.seen_as("<img src=x onerror=alert(1)>\"'& ")
    ann.upload(game())
    visitor.sign_in()
    page = visitor.open("/leaderboard")
    assert page.inner_text("#entries a") == "<img src=x onerror=alert(1)>\"'&"
    assert page.locator("#entries img").count() == 0
    page.fill("#display-name", "a\u202eb")
    page.click("#name-form button.main")
    page.wait_for_selector("#name-form .refused")
    assert page.input_value("#display-name") == "a\u202eb"


def test_ones_own_row_is_kept_in_view(visitor, site, running):
    """Further down than the board shows, with the neighbours."""
    for number in range(25):
        player = Game(site, f"player{number:02}")
        player.seen_as(f"Player {number}")
        check(running.dsn, player.upload({**game(), "moves": []}), 900 - number)
    visitor.sign_in("player23")
    page = visitor.open("/leaderboard")
    assert page.locator("#entries tbody tr").count() == 20
    assert page.locator("#around tr.own").inner_text().split()[0] == "24"
    page.click("#more")
    until(page, "document.querySelectorAll('#entries tbody tr').length === 25")
    until(page, "!document.querySelector('#around tr')")
    page.select_option("#draw", "DrawThree")
    until(page, "document.getElementById('entries').textContent.includes('Nobody')")


def test_the_days_board(visitor, site, running):
    ann = Game(site)
    ann.seen_as("Ann")
    today = ann.call("GET", "/api/daily-challenge")
    check(running.dsn, ann.upload({**game(), "seed": today["seed"], "moves": []}), 500)
    visitor.sign_in()
    page = visitor.open("/daily")
    assert str(today["seed"]) in page.inner_text("#day")
    assert page.inner_text("#winners tbody a") == "Ann"
    assert page.is_hidden("#later")
    page.click("#earlier")
    page.wait_for_url("**/daily/*")
    visitor.settle()
    assert "No entries yet" in page.inner_text("#winners")
    page.click("#later")
    page.wait_for_url(f"**/daily/{today['date']}")
    assert "Today’s deal" in visitor.open("/").inner_text("#wins")
