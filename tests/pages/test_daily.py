"""Tests of /daily: the player's own results, the streak, and days that are over."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.checking.uploads import game
from tests.harness.boards import SEED, check
from tests.harness.payloads import progress_of
from tests.harness.postgres import run_sql
from tests.pages.player import KEEP_JOURNALS, Hand, keep, kept, opened, won_game
from tests.pages.visitor import Game, until

DAY = datetime(2026, 4, 26, tzinfo=UTC)  # its goal: win within 8 minutes
MISSED = "Too late for the board, but a win still marks your calendar."
WON = {"id": "1", "at": "2026-04-27T11:59:59.000Z", "won": True, "score": 640, "seconds": 100, "draw": 1,
       "undone": False, "day": {"date": "2026-04-26"}}  # fmt: skip


def shown(page):
    """The text about the player's own result, once it is there."""
    return until(page, "document.getElementById('own').textContent")


def marks(page, first, last):
    """The marks of some days of April 2026 in the calendar: nothing, "won" or "won later"."""
    days = [page.locator(f".month a[href='/daily/2026-04-{day}']") for day in range(first, last + 1)]
    return [day.get_attribute("aria-label").partition(", ")[2] for day in days]


@pytest.mark.parametrize(
    ("hours", "seconds", "words"),
    [
        (35, 480, "You won it with 640 points in 8:00. Goal met."),
        (35, 481, "You won it with 640 points in 8:01. Goal missed, it still counts as a win."),
        (36, 100, MISSED),
    ],
)
def test_day_has_the_players_result(visit, site, running, hours, seconds, words):
    """The calendar marks the days of the account's progress."""
    ann = visit()
    ann.register()
    player = Game(site, login=True)
    player.call("POST", "/api/sync/push", progress_of(progress__daily_challenge_history=["2026-04-24"]))
    replay_id = player.upload({**game(), "seed": SEED, "moves": [], "time_seconds": seconds, "final_score": 640})
    run_sql(running.dsn, "UPDATE replays SET received_at = %s", (DAY + timedelta(hours=hours),))
    check(running.dsn, replay_id, 640)
    page = ann.open("/daily/2026-04-26")
    assert shown(page) == words
    assert marks(page, 24, 26) == ["won", "", ""]


def test_signed_out_player_sees_results_of_this_browser(visitor):
    """The wins of this browser are not sent anywhere."""
    page = visitor.open("/replays")
    games = [WON, {**WON, "id": "2", "score": 610}, {**WON, "id": "3", "score": 700, "at": "2026-04-27T12:00:00.000Z"}]
    journal = {"base": None, "answers": 0, "games": games, "sent": None, "wins": []}
    page.evaluate(KEEP_JOURNALS, {"known": [], "uploaded": {}, "of": {"": journal}})
    page.evaluate("localStorage['solisync.game'] = '{}'")
    page = visitor.open("/daily/2026-04-26")
    assert shown(page) == "You won it with 640 points in 1:40. Goal met."
    assert marks(page, 25, 26) == ["", "won"]


@pytest.mark.parametrize(("days", "streak"), [(0, 4), (1, 4), (4, 0)])
def test_streak_ends_when_the_next_day_can_not_be_won(visit, site, days, streak):
    """The streak is the account's, which the last won day ends 60 hours after its start."""
    ann = visit()
    ann.register()
    last = str((datetime.now(UTC) - timedelta(days)).date())
    progress = progress_of(
        progress__daily_challenge_last_completed=last, progress__daily_challenge_streak=4, stats__games_played=4
    )
    Game(site, login=True).call("POST", "/api/sync/push", progress)
    page = ann.open("/daily/2026-04-26")
    assert ("Your streak: 4 days." in shown(page)) == bool(streak)
    assert page.inner_text("#streak") == ("4-day streak" if streak else "")
    facts = ann.open("/").locator("dl.facts").inner_text()
    assert f"Daily streak\n{streak} days, longest 4" in facts or "Daily streak\n4 days" in facts


def test_missed_day_can_be_played(visitor):
    """The game has the day's deal and goal, and its win names the day. The day's board no longer takes it."""
    page = visitor.open("/daily/2026-04-26")
    page.click("#day .button")
    until(page, "document.querySelector('#board li') && !document.querySelector('[aria-busy]')")
    assert kept(page)["deal"] == str(SEED)
    assert page.inner_text("#deal-heading") == "Deal of Sunday, 26 April 2026"
    assert page.inner_text("#goal") == "Win within 8 minutes: 8:00 left"
    day = kept(page)["day"]
    assert day == {
        "date": "2026-04-26", "description": "Win within 8 minutes", "target_score": None, "max_time_secs": 480,
    }  # fmt: skip
    replay, moves = won_game(0)
    keep(page, replay, moves[:-1], day=day)
    opened(visitor)
    Hand(page).drag(moves[-1])
    page.wait_for_selector("#won:not([hidden])")
    assert page.inner_text("#won-heading").startswith("Deal of 26 April 2026 won in")


def test_two_days_with_the_same_deal_are_two_games(visitor):
    page = opened(visitor, "/play?daily=2026-04-26")
    first = kept(page)["id"]
    assert kept(opened(visitor, "/play?daily=2026-04-26"))["id"] == first
    game = {**kept(page), "day": {**kept(page)["day"], "date": "2026-04-25"}}
    page.goto("/replays")
    page.evaluate("game => localStorage['solisync.day'] = JSON.stringify(game)", game)
    page = opened(visitor, "/play?daily=2026-04-26")
    assert kept(page)["id"] != first
    assert kept(page)["day"]["date"] == "2026-04-26"
