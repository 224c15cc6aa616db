"""Tests of the leaderboard and of the boards of days: names, the player's own row, goals and links to other days."""

import pytest

from tests.checking.uploads import game
from tests.harness.boards import check
from tests.harness.constants import PATIENCE
from tests.harness.postgres import run_sql
from tests.pages.test_live import listening
from tests.pages.visitor import Game, until


def test_names_with_markup_stay_text(visitor, site):
    """Boards, lists and the form show the markup as text. The form refuses bidi marks."""
    ann = Game(site)
    ann.seen_as("<img src=x onerror=alert(1)>\"'& ")
    ann.upload(game())
    visitor.sign_in()
    page = visitor.open("/leaderboard")
    assert page.inner_text("#entries a") == "<img src=x onerror=alert(1)>\"'&"
    assert page.locator("#entries img").count() == 0
    page.click("#name summary")
    page.fill("#display-name", "a\u202eb")
    page.click("#name-form button.main")
    page.wait_for_selector("#name-form .refused")
    assert page.input_value("#display-name") == "a\u202eb"


def test_own_row_is_shown_below_the_board(visitor, site, running):
    """A player ranked below the last row of the board sees their own row and its neighbours."""
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
    until(page, "document.getElementById('entries').textContent.includes('no entries yet')")


def test_board_keeps_a_page_that_was_loaded_during_a_refresh(visitor, site, running):
    """The refresh asked for twenty entries before the next page came. Then it asks for all of them."""
    players = [Game(site, f"player{number:02}") for number in range(26)]
    for number, player in enumerate(players):
        check(running.dsn, player.upload({**game(), "moves": []}), 600 + number)
        if number < 25:
            player.seen_as(f"Player {number}")
    visitor.sign_in("player23")
    page = visitor.open("/leaderboard")
    listening(page)
    held = []
    of_refreshes = "**/api/boards/verified?limit=20"
    page.route(of_refreshes, lambda route: held.append(route))
    with page.expect_request(of_refreshes, timeout=1000 * PATIENCE):
        players[25].seen_as("Player 25")
    page.click("#more")
    until(page, "document.querySelectorAll('#entries tbody tr').length === 25")
    page.route(of_refreshes, lambda route: route.continue_())
    for route in held:
        route.continue_()
    until(page, "document.querySelector('#entries tbody a').textContent === 'Player 25'")
    assert page.locator("#entries tbody tr").count() == 25


def test_reported_scores_have_ranks_and_say_which_are_proved(visitor, site):
    """The address has the board and the draw mode, so a reload shows the same. The form of the name comes first."""
    ann, bob = Game(site), Game(site, "bob")
    for player, score in ((ann, None), (bob, 5000)):
        player.seen_as(player.name.title())
        player.upload(game() if score is None else game(final_score=score))
    visitor.sign_in()
    page = visitor.open("/leaderboard?draw=DrawThree")
    page.click("#tab-reported")
    visitor.settle()
    for _ in range(2):
        names = page.locator("#reports tbody .who").all_inner_texts()
        assert [name.split() for name in names] == [["1", "Bob"], ["2", "Ann"]]
        rows = page.locator("#reports tbody tr").all_inner_texts()
        assert ["Not verified" in row for row in rows] == [True, False]
        assert page.url.endswith("/leaderboard?board=reported&draw=DrawThree")
        page.reload()
        visitor.settle()
    assert page.input_value("#draw") == "DrawThree"
    assert page.evaluate("document.querySelector('#boards').firstElementChild.id") == "name"


def test_daily_board(visitor, site, running):
    ann = Game(site)
    ann.seen_as("Ann")
    today = ann.call("GET", "/api/daily-challenge")
    check(running.dsn, ann.upload({**game(), "seed": today["seed"], "moves": []}), 500)
    assert "chose to appear" in visitor.open("/daily").inner_text("#winners")
    visitor.sign_in()
    page = visitor.open("/daily")
    assert page.inner_text("#winners tbody a") == "Ann"
    assert page.is_hidden("#later")
    page.click("#earlier")
    page.wait_for_url("**/daily/*")
    visitor.settle()
    assert "No entries yet" in page.inner_text("#winners")
    page.click("#later")
    page.wait_for_url(f"**/daily/{today['date']}")
    assert "Today’s deal" in visitor.open("/").inner_text("#wins")


def test_daily_board_marks_players_within_the_goal(visitor, site, running):
    """The goal counts the time on the game's clock. The switch hides other rows, and the start page shows the deal."""
    for number, (name, seconds) in enumerate((("ann", 100), ("bob", 5000), ("eve", 120))):
        player = Game(site, name)
        player.seen_as(name.title())
        replay_id = player.upload({**game(), "seed": 1364344767969826, "moves": [], "time_seconds": seconds})
        run_sql(running.dsn, "UPDATE replays SET received_at = '2026-04-26T12:00Z' WHERE id = %s", (replay_id,))
        check(running.dsn, replay_id, 600 + number)
    assert "3 players on the leaderboard won it" in visitor.open("/daily/2026-04-26").inner_text("#won")
    visitor.sign_in()
    page = visitor.open("/daily/2026-04-26")  # its goal: win within 8 minutes
    tagged = page.locator("#winners tr:has(.tag:text-is('Goal met'))")
    assert tagged.locator("a").all_text_contents() == ["Eve", "Ann"]
    page.check("#only-met")
    until(page, "document.querySelectorAll('#winners tbody a').length === 2")
    assert page.locator("#winners tbody a").all_text_contents() == ["Eve", "Ann"]
    assert page.locator(".deal span").count() == 7
    assert page.inner_text("#left") == ""
    for path in ("/daily", "/"):
        page = visitor.open(path)
        assert page.inner_text("#left").endswith("left")
        assert page.locator(".deal b").count() == 7


@pytest.mark.parametrize(
    ("score", "seconds", "is_met"), [(745, 214, True), (745, 216, False), (3999, 9_999_999, False)]
)
def test_goal_in_points_includes_the_speed_bonus(visitor, site, running, score, seconds, is_met):
    """The bonus is 700,000 points divided by the seconds, as on the desktop game's win screen."""
    ann = Game(site)
    ann.seen_as("Ann")
    replay_id = ann.upload({**game(), "seed": 1364344767969823, "moves": [], "time_seconds": seconds})
    run_sql(running.dsn, "UPDATE replays SET received_at = '2026-04-23T12:00Z' WHERE id = %s", (replay_id,))
    check(running.dsn, replay_id, score)
    visitor.sign_in()
    page = visitor.open("/daily/2026-04-23")
    assert "4,000 points" in page.inner_text(".goal")
    assert page.locator("#winners .tag", has_text="Goal met").count() == is_met


def test_time_left_of_a_day_is_written_in_words(visitor):
    """The text leaves out hours when less than an hour is left."""
    page = visitor.open("/replays")
    left = """async (minutes) => {
      const { timeLeft } = await web("page.js");
      const place = document.createElement("p");
      timeLeft(place, new Date(Date.now() - 86_400_000 + minutes * 60_000 - 1000).toISOString());
      return place.textContent;
    }"""
    texts = [page.evaluate(left, minutes) for minutes in (54, 61, 120, 1, 0)]
    assert texts == [
        "54 minutes left",
        "1 hour 1 minute left",
        "2 hours left",
        "1 minute left",
        "This day is over. Go to today’s deal",
    ]
