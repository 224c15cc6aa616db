"""Tests of the days from one to the next, on a service, a database and pages whose clocks move together."""

import contextlib
import time
from datetime import UTC, date, datetime, timedelta

import pytest

from solisync.rules.challenge import daily_challenge
from tests.harness.constants import PASSWORD, PATIENCE
from tests.harness.database_clock import DatabaseClock
from tests.harness.entry_points import serving
from tests.pages.player import JOURNALS, Fingers, Hand, journals, keep, opened, solution, until_journals
from tests.pages.visitor import Game, Visitor, until

FIRST = date(2027, 1, 4)  # from 2027 on, every day can be won
DAYS = [FIRST + timedelta(days=number) for number in range(14)]
PHONE = {"width": 390, "has_touch": True, "is_mobile": True, "reduced_motion": "reduce"}
LAST_MOVES = 6  # are made by hand


class World:
    """A service whose day the test chooses, also for the pages of its visitors."""

    def __init__(self, url, clock, file):
        self.url = url
        self.visitors = []
        self._clock = clock
        self._file = file

    def move_to(self, day, hours=9):
        """Let it be some hours after the start of a day."""
        self.now = datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=hours)
        seconds = self.now.timestamp() - time.time()
        self._clock.step(f"{seconds} seconds")
        unfinished = self._file.with_suffix(".new")
        unfinished.write_text(str(seconds), "utf-8")
        unfinished.rename(self._file)
        for visitor in self.visitors:
            visitor.page.clock.set_fixed_time(self.now)


@pytest.fixture
def world(reactor, logs, migrated_database, tmp_path):
    file = tmp_path / "ahead"
    file.write_text("0", "utf-8")
    clock = DatabaseClock(migrated_database)
    with serving(reactor, logs, migrated_database, CLOCK_OF_TEST=str(file), SOLISYNC_CHECKERS="1") as service:
        world = World(service.url, clock, file)
        world.move_to(FIRST)
        yield world


@pytest.fixture
def visit(chromium, world):
    """Create visitors of that service. Fail at the end on complaints."""
    with contextlib.ExitStack() as stack:

        def visit(**options):
            visitor = Visitor(chromium, world.url, **options)
            stack.callback(visitor.context.close)
            world.visitors.append(visitor)
            visitor.page.clock.set_fixed_time(world.now)
            return visitor

        yield visit
        for visitor in world.visitors:
            assert visitor.complaints == []
            assert visitor.elsewhere == []


def by_finger(page, move):
    hand = Hand(page)
    if move is None:
        hand.tap(None)
    else:
        Fingers(page).drag(hand.centre(move[0], move[2]), hand.centre(move[1]), steps=3, pause=5)


def by_mouse(page, move):
    Hand(page).drag(move)


def by_keys(page, move):
    page.evaluate("board.contains(document.activeElement) || board.querySelector('[tabindex=\"0\"]').focus()")
    Hand(page).key(move)


WAYS = (by_finger, by_mouse, by_keys)


def win(visitor, day, way=by_finger, *, by_hand=LAST_MOVES):
    """Open the day's deal and win it: the last moves by hand, or all of them if `by_hand` is None."""
    goal = daily_challenge(day)
    replay, moves = solution(goal.seed)
    page = visitor.page
    if by_hand:
        goal = {
            "date": str(day), "description": goal.description, "target_score": goal.target_score,
            "max_time_secs": goal.max_time_secs,
        }  # fmt: skip
        keep(page, replay, moves[:-by_hand], day=goal, ms=100_000, number=day.toordinal() % 1_000_000)
    page = opened(visitor, f"/play?daily={day}")
    for number, move in enumerate(moves[-by_hand:] if by_hand else moves, len(moves) - by_hand if by_hand else 0):
        way(page, move)
        until(page, f"document.getElementById('moves').textContent.startsWith('{number + 1} move')")
    page.wait_for_selector("#won:not([hidden])")
    until(page, "document.querySelector('#result .place')")
    return page


def panel(page):
    return page.inner_text("#result")


def progress_of(world):
    """The progress of ann as the service has it."""
    return Game(world.url, login=True).call("GET", "/api/sync/pull")["merged"]["progress"]


def has_streak(visitor, days, last):
    """Whether all places name the streak: the panel of the win, the header, home, the day's page and its calendar."""
    words = f"{days}-day streak"
    page = visitor.page
    until(page, f"document.getElementById('result').innerText.includes('{words} · next deal in 15 hours')")
    until(page, f"document.getElementById('streak').textContent === '{words}'")
    page = visitor.open("/")
    assert page.inner_text("#own") == f"✓ Won today · {words}"
    assert page.inner_text("#streak") == words
    page = visitor.open(f"/daily/{last}")
    until(page, "document.getElementById('own').textContent")
    assert page.inner_text("#own").startswith("You won it")
    assert page.inner_text("#own").endswith(f"Your streak: {days} days.")
    won = page.locator(".month a[aria-label$=', won']").evaluate_all("(days) => days.map((day) => day.dataset.date)")
    assert won == [str(day) for day in DAYS[:days]]


def test_fortnight_of_a_player_is_a_streak_of_14_days(visit, world):
    """Every day counts once, by finger, mouse and keys, and the service has the same streak."""
    ann = visit(**PHONE)
    ann.register()
    for number, day in enumerate(DAYS, 1):
        world.move_to(day)
        page = win(ann, day, WAYS[number % 3])
        until(page, f"document.getElementById('streak').textContent === '{number}-day streak'")
        until_journals(page, f"!{JOURNALS}.of.ann?.games.length")
    has_streak(ann, 14, DAYS[-1])
    progress = progress_of(world)
    assert (progress["daily_challenge_streak"], progress["daily_challenge_longest_streak"]) == (14, 14)
    assert progress["daily_challenge_history"][-14:] == list(map(str, DAYS))


def test_fortnight_without_an_account_becomes_the_players(visit, world):
    """The player signs up in the panel of the last win, and comes back to it with the whole streak."""
    ann = visit(**PHONE)
    for number, day in enumerate(DAYS, 1):
        world.move_to(day)
        page = win(ann, day, WAYS[number % 3])
        until(page, f"document.getElementById('streak').textContent === '{number}-day streak'")
    has_streak(ann, 14, DAYS[-1])
    page = opened(ann, f"/play?daily={DAYS[-1]}")
    page.get_by_role("link", name="Create a free account to save them").tap()
    page.fill("#new-name", "ann")
    page.fill("#new-password", PASSWORD)
    page.locator("#new-form button.main").tap()
    page.locator("#codes-next").tap()
    page.wait_for_url(f"**/play?daily={DAYS[-1]}")
    until_journals(page, f"{JOURNALS}.of.ann && !{JOURNALS}.of.ann.games.length && !{JOURNALS}.of['']")
    has_streak(ann, 14, DAYS[-1])
    progress = progress_of(world)
    assert progress["daily_challenge_streak"] == 14


def test_streak_ends_after_a_missed_day(visit, world):
    """A win counts for 36 hours. A day that is won later is marked, but lengthens no streak."""
    ann = visit(**PHONE)
    win(ann, DAYS[0])
    world.move_to(DAYS[2], hours=11)
    page = win(ann, DAYS[1])
    assert "2-day streak" in panel(page)
    world.move_to(DAYS[4])
    page = win(ann, DAYS[4])
    assert "1-day streak" in panel(page)
    page = win(ann, DAYS[2])
    assert "1-day streak" in panel(page)
    page = ann.open(f"/daily/{DAYS[2]}")
    until(page, "document.getElementById('own').textContent")
    assert page.inner_text("#own") == "You won it later. Your streak: 1 day."
    assert page.locator(".month a[aria-label$=', won later']").get_attribute("data-date") == str(DAYS[2])


@pytest.mark.parametrize("link", ["shared", "of version 1.1"])
def test_friend_wins_the_shared_day(visit, world, link):
    """The friend has another browser and no account. The day's page and home name the win, the goal and the streak."""
    day = next(day for day in DAYS if daily_challenge(day).max_time_secs)
    world.move_to(day)
    ann, bob = visit(reduced_motion="reduce"), visit(**PHONE)
    ann.context.add_init_script("""
      Object.defineProperty(navigator, "share", { value: async ({ text, url }) => { window.shared = [text, url]; } });
    """)
    ann.register()
    page = win(ann, day, by_mouse)
    page.get_by_role("button", name="Share").click()
    text, url = until(page, "window.shared")
    assert url == f"{world.url}/play?daily={day}"
    assert " ✓ · 1-day streak" in text
    if link == "of version 1.1":
        url = f"{world.url}/play?deal={daily_challenge(day).seed}&draw=one"
    page = opened(bob, url)
    assert daily_challenge(day).description in page.inner_text("#goal")
    page = win(bob, day, by_hand=None)
    assert f"✓ Goal met: {daily_challenge(day).description.lower()}" in panel(page)
    page = bob.open("/daily")
    until(page, "document.getElementById('own').textContent")
    assert page.inner_text("#own").startswith("You won it with ")
    assert page.inner_text("#own").endswith(" Goal met. Your streak: 1 day.")
    assert bob.open("/").inner_text("#own") == "✓ Won today · 1-day streak"


def test_offline_win_lengthens_the_streak_before_it_is_sent(visit, world):
    """The page says where the win is, and sends it when there is a connection again."""
    ann = visit(**PHONE)
    ann.register()
    win(ann, DAYS[0])
    until_journals(ann.page, f"!{JOURNALS}.of.ann?.games.length")
    world.move_to(DAYS[1])
    goal = daily_challenge(DAYS[1])
    replay, moves = solution(goal.seed)
    keep(ann.page, replay, moves[:-2], number=2, day={
        "date": str(DAYS[1]), "description": goal.description, "target_score": None, "max_time_secs": None,
    })  # fmt: skip
    page = opened(ann, f"/play?daily={DAYS[1]}")
    by_finger(page, moves[-2])
    ann.settle()
    ann.context.set_offline(True)
    by_finger(page, moves[-1])
    until(page, "document.getElementById('result').innerText.includes('2-day streak')")
    until(page, "document.getElementById('streak').textContent === '2-day streak'")
    until(page, "document.getElementById('result').innerText.includes('It will be sent when you’re back online')")
    until(page, "document.getElementById('waiting').textContent.includes('to be sent')")
    ann.context.set_offline(False)
    until_journals(page, f"!{JOURNALS}.of.ann?.games.length")
    assert (
        Game(world.url, login=True).call("GET", "/api/sync/pull")["merged"]["progress"]["daily_challenge_streak"] == 2
    )


def test_leaderboard_takes_a_win_after_one_tap(visit, world):
    """The panel offers it under the username, once. The win is then on the day's board and its rank in the panel."""
    ann = visit(**PHONE)
    ann.register("marilla")
    page = win(ann, DAYS[0])
    until(page, "document.getElementById('result').innerText.includes('✓ Score verified')", PATIENCE)
    until(page, "document.getElementById('won').innerText.includes('Show this win on the leaderboard as “marilla”?')")
    page.get_by_role("button", name="Show it").tap()
    until(page, "/place 1|1st|first/i.test(document.getElementById('result').innerText)")
    assert page.get_by_role("button", name="Show it").count() == 0
    page = ann.open(f"/daily/{DAYS[0]}")
    assert page.inner_text("#winners tbody tr.own th b") == "You"
    assert journals(page, f"{JOURNALS}.of.marilla.wins.length") == 0
