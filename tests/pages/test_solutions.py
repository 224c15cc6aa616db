"""Tests of what players see of a day's wins before they have won its deal."""

import pytest

from tests.checking.uploads import game
from tests.harness.boards import check
from tests.pages.player import KEEP_JOURNALS
from tests.pages.visitor import Game, until


@pytest.fixture
def winner(site, running):
    """A player on the leaderboard who has won today's deal, with `day` and `replay_id`."""
    ann = Game(site)
    ann.seen_as("Ann")
    ann.day = ann.call("GET", "/api/daily-challenge")
    ann.replay_id = ann.upload({**game(), "seed": ann.day["seed"], "moves": []})
    check(running.dsn, ann.replay_id, 500)
    return ann


def won_here(visitor, day, *, won=True):
    """Store in the browser a game of the day that was played signed out."""
    page = visitor.open("/replays")
    date = day["date"]
    goal = {"date": date, "target_score": None, "max_time_secs": None}
    played = {"id": "1", "at": f"{date}T00:00:01.000Z", "won": won, "score": 640, "seconds": 100, "draw": 1,
              "undone": False, "day": goal}  # fmt: skip
    journal = {"base": None, "answers": 0, "games": [played], "sent": None, "wins": []}
    page.evaluate(KEEP_JOURNALS, {"known": [], "uploaded": {}, "of": {"": journal}})
    page.evaluate("localStorage['solisync.day'] = '{}'")


def is_open(visitor, replay_id):
    """Whether the page of the replay shows the game."""
    page = visitor.open(f"/replays/{replay_id}")
    closed = "when you have won the deal" in page.inner_text("#why")
    assert page.is_visible("#why a") == closed
    return not closed


def test_wins_of_today_are_hidden_from_other_players(visitor, winner):
    """The home page has their number, the list of wins too, and the replay's page offers the deal."""
    page = visitor.open("/")
    assert "1 player has won it so far." in page.inner_text("#today")
    assert page.locator("#wins tbody tr").count() == 0
    page = visitor.open("/replays")
    assert page.locator("#list tbody tr").count() == 0
    assert page.inner_text("#hidden").startswith("1 newer win of the day’s deal: shown when you have won it, or after ")
    assert not is_open(visitor, winner.replay_id)
    assert visitor.page.get_attribute("#why a", "href") == f"/play?daily={winner.day['date']}"
    assert not [url for url in visitor.requested if url.endswith("/timeline")]


@pytest.mark.parametrize("won", [True, False])
def test_player_who_has_won_the_day_sees_its_wins(visitor, winner, won):
    """A game of the day that was lost opens none."""
    won_here(visitor, winner.day, won=won)
    assert visitor.open("/").locator("#wins tbody tr").count() == won
    assert visitor.open("/replays").locator("#list tbody tr").count() == won
    assert is_open(visitor, winner.replay_id) == won


def test_owner_sees_the_own_win(visitor, winner):
    visitor.sign_in()
    assert visitor.open("/").locator("#wins tbody tr").count() == 1
    assert is_open(visitor, winner.replay_id)


def test_board_of_the_day_leads_to_no_replay_of_others(visit, site, winner):
    """Its rows are names. The player's own row is a link, and with a win all rows are."""
    bob = visit()
    bob.register("bob")
    page = bob.open("/daily")
    assert page.inner_text("#winners tbody th b") == "Ann"
    assert page.locator("#winners tbody a").count() == 0
    ann = visit()
    ann.sign_in()
    assert ann.open("/daily").locator("#winners tbody a").count() == 1


def test_wins_of_a_day_open_after_36_hours(visitor, winner):
    """The clock of the device decides. The API always shows them."""
    page = visitor.page
    page.clock.set_fixed_time(page.evaluate(f"Date.parse('{winner.day['date']}') + 36 * 3_600_000 + 1000"))
    assert visitor.open("/replays").locator("#list tbody tr").count() == 1
    assert is_open(visitor, winner.replay_id)


def test_wins_stay_visible_when_the_day_is_unknown(visitor, winner):
    """An error hides nothing: to hide is a courtesy."""
    visitor.context.route("**/api/daily-challenge", lambda route: route.abort())
    assert is_open(visitor, winner.replay_id)


def test_streak_is_in_the_header_of_all_pages(visitor, winner):
    """It is of this browser while signed out, and ends with the session of the player whose it is."""
    won_here(visitor, winner.day)
    page = visitor.open("/")
    until(page, "document.getElementById('streak').textContent === '1-day streak'")
    assert page.inner_text("#own") == "✓ Won today · 1-day streak"
    for path in ("/leaderboard", "/play", f"/daily/{winner.day['date']}", "/nope"):
        assert visitor.open(path).inner_text("#streak") == "1-day streak", path
    visitor.register("bob")
    assert visitor.open("/leaderboard").inner_text("#streak") == ""


@pytest.mark.parametrize("kept", ["", "x", "1e9 never", "NaN 2026-01-01 ", "-1 2999-01-01 ", "[]"])
def test_header_shows_no_streak_that_is_damaged(visitor, kept):
    visitor.open("/leaderboard")
    visitor.page.evaluate("kept => localStorage.setItem('solisync.streak', kept)", kept)
    assert visitor.open("/leaderboard").inner_text("#streak") == ""


def test_calendar_is_a_table_for_keys_and_screen_readers(visitor, winner):
    """Arrows move through the days, and a button through the months. Days to come lead nowhere."""
    won_here(visitor, winner.day)
    page = visitor.open("/daily/2026-04-15")
    until(page, "document.querySelector('.month')")
    assert page.locator(".month thead th").count() == 7
    assert page.inner_text(".months b") == page.inner_text(".month caption") == "April 2026"
    page.locator(".month a[href='/daily/2026-04-15']").focus()
    for key, day in (("ArrowRight", 16), ("ArrowDown", 23), ("ArrowLeft", 22), ("ArrowUp", 15)):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.getAttribute('href')") == f"/daily/2026-04-{day}"
    page.get_by_role("button", name="Month after").click()
    assert page.inner_text(".months b") == "May 2026"
    assert page.evaluate("document.activeElement.textContent").endswith("Month after")
    page = visitor.open("/daily")
    until(page, "document.querySelector('.month a[aria-label$=\", won\"]')")
    assert page.get_by_role("button", name="Month after").is_disabled()
    number = int(winner.day["date"][8:])
    assert page.locator(".month td:not(:has(a))").evaluate_all(
        "(cells, today) => cells.every((cell) => !cell.textContent || Number(cell.textContent) > today)", number
    )
