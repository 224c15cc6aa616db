"""Pages hear of what happens: one stream a browser, and without one they ask now and then."""

import contextlib
import os
import signal
import subprocess

import pytest

from tests.checking.uploads import checkers, game
from tests.harness.boards import check
from tests.harness.constants import BIN, PATIENCE
from tests.harness.payloads import progress_of
from tests.harness.processes import clean_environment
from tests.harness.service import environment
from tests.pages.visitor import Game, until

STREAM = "**/api/events*"
SAID = "document.getElementById('said').textContent"
VERIFIED = "#verdict[data-status=verified]"
LISTENS = "import('/web/live.js').then(({ streaming }) => streaming())"
HIDE = """hidden => {
  Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture
def ann(visit):
    """A player who is signed in, and the streams that her browser has opened."""
    ann = visit()
    ann.register()
    ann.streams = []
    ann.context.on("request", lambda request: "/api/events" in request.url and ann.streams.append(request))
    return ann


@contextlib.contextmanager
def no_checks(running):
    """Checkers stand still meanwhile."""
    stopped = checkers(running.pid)
    assert stopped
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def administrate(running, *words):
    """Run a command of the operator's beside the service."""
    command = [BIN / "solisync", *words, "--yes"]
    subprocess.run(command, env=clean_environment(**environment(running.dsn)), check=True, capture_output=True)


def listening(page):
    """Wait until a page has a stream, its own or another tab's."""
    until(page, LISTENS, PATIENCE)


def test_a_verdict_appears_when_it_is_made(ann, running):
    """On the page of the replay, where it is said too, and in one's own games; nobody has to ask."""
    player = Game(ann.site, login=True)
    asked = []
    with no_checks(running):
        replay_id = player.call("POST", "/api/replays", game())["id"]
        page = ann.open(f"/replays/{replay_id}")
        listening(page)
        games = ann.context.new_page()
        games.goto("/account")
        until(games, "document.querySelector('#games .mark')?.textContent === 'Checking …'")
        listening(games)
        page.on("request", lambda request: request.url.endswith("/verdict") and asked.append(request))
    page.wait_for_selector(VERIFIED, timeout=PATIENCE * 1000)
    until(page, f"{SAID}.startsWith('Verified')")
    until(games, "document.querySelector('#games .mark').textContent === '✓ Verified'", PATIENCE)
    assert len(asked) <= 2


def test_one_stream_is_enough_for_all_tabs(ann):
    """The last tab that is left reads it; events reach those that don't."""
    ann.open("/account")
    listening(ann.page)
    tabs = [ann.context.new_page() for _ in range(2)]
    for tab in tabs:
        tab.goto("/account")
        listening(tab)
    assert len(ann.streams) == 1
    player = Game(ann.site, login=True)
    player.call("POST", "/api/sync/push", progress_of(stats__games_played=5, stats__games_won=3))
    for page in (ann.page, *tabs):
        until(page, "document.getElementById('standing').innerText.includes('3 of 5')", PATIENCE)
    ann.page.close()
    ann.page = tabs[0]
    player.call("POST", "/api/sync/push", progress_of(stats__games_played=9, stats__games_won=4))
    for page in tabs:
        until(page, "document.getElementById('standing').innerText.includes('4 of 9')", PATIENCE)
    assert len(ann.streams) == 2


def test_boards_move_when_a_game_counts(ann):
    """The focus stays on the row that had it, and a change is said once."""
    bob = Game(ann.site, "bob")
    bob.seen_as("Bob")
    first = bob.upload(game())
    page = ann.open("/leaderboard")
    listening(page)
    page.focus(f"#entries a[href='/replays/{first}']")
    eve = Game(ann.site, "eve")
    eve.seen_as("Eve")
    eve.upload(game(1))
    until(page, "document.querySelectorAll('#entries tbody tr').length === 2", PATIENCE)
    assert page.evaluate("document.activeElement.getAttribute('href')") == f"/replays/{first}"
    assert page.evaluate(SAID) == "The board has changed."
    page.click("#tab-reported")
    page.wait_for_selector("#reports table")
    page.evaluate(f"{SAID} = ''")
    bob.call("DELETE", "/api/leaderboard/opt-in")
    until(page, "document.querySelectorAll('#reports tbody tr').length === 1", PATIENCE)
    until(page, "document.querySelectorAll('#entries tbody tr').length === 1", PATIENCE)
    assert page.evaluate(SAID) == ""


def test_the_days_board_moves(ann, running):
    """And so does what it says of how many have won."""
    page = ann.open("/daily")
    assert page.inner_text("#won").startswith("No player")
    listening(page)
    seed = page.evaluate("JSON.parse(document.getElementById('data').textContent).deal")
    bob = Game(ann.site, "bob")
    check(running.dsn, bob.upload({**game(), "seed": int(seed), "moves": []}), 600)
    bob.seen_as("Bob")
    until(page, "document.querySelector('#winners tbody a')?.textContent === 'Bob'", PATIENCE)
    assert page.inner_text("#won").startswith("1 player on the leaderboard won it.")


def test_sessions_follow(ann):
    """A push from another device shows that device."""
    page = ann.open("/account")
    listening(page)
    assert page.locator("#devices tbody tr").count() == 1
    Game(ann.site, login=True).call("POST", "/api/sync/push", progress_of(stats__games_played=1))
    until(page, "document.querySelectorAll('#devices tbody tr').length === 2", PATIENCE)


def test_a_suspended_player_is_told(ann, running):
    """In all tabs, in the operator's words."""
    page = ann.open("/account")
    other = ann.context.new_page()
    other.goto("/")
    for tab in (page, other):
        listening(tab)
    administrate(running, "users", "suspend", "ann", "--message", "Take a break.")
    for tab in (page, other):
        until(tab, "document.getElementById('over')?.innerText.includes('Take a break.')", PATIENCE)


def test_who_is_signed_out_elsewhere_is_told(ann):
    """Not after one's own signing out."""
    page = ann.open("/account")
    listening(page)
    page.click("#sign-out")
    page.wait_for_selector("#out:not([hidden])")
    assert page.locator("#over").count() == 0
    ann.sign_in()
    listening(page)
    game_session = Game(ann.site, login=True)
    (browser,) = [each for each in game_session.call("GET", "/api/sessions") if not each["current"]]
    game_session.call("DELETE", f"/api/sessions/{browser['id']}")
    until(page, "document.getElementById('over')?.innerText.startsWith('You have been signed out.')", PATIENCE)
    assert page.is_visible("#out")


def test_who_is_deleted_elsewhere_is_told(ann):
    page = ann.open("/account")
    listening(page)
    Game(ann.site, login=True).call("DELETE", "/api/account")
    until(page, "document.getElementById('over')?.innerText.startsWith('This account has been deleted.')", PATIENCE)
    page.wait_for_selector("#out:not([hidden])")


@pytest.mark.parametrize("status", [404, 503])
def test_without_a_stream_pages_ask(ann, running, status):
    """As before there were events."""
    ann.context.route(STREAM, lambda route: route.fulfill(status=status, headers={"Retry-After": "30"}, body="{}"))
    player = Game(ann.site, login=True)
    with no_checks(running):
        replay_id = player.call("POST", "/api/replays", game())["id"]
        page = ann.open(f"/replays/{replay_id}")
    page.wait_for_selector(VERIFIED, timeout=PATIENCE * 1000)


def test_a_hidden_tab_listens_for_five_minutes(ann):
    """And opens a stream again as soon as it is seen."""
    ann.page.clock.install()
    page = ann.open("/account")
    listening(page)
    page.evaluate(HIDE, True)
    with page.expect_event("requestfailed", lambda request: "/api/events" in request.url):
        page.clock.run_for(301_000)
    opened = len(ann.streams)
    page.clock.run_for(60_000)
    page.wait_for_timeout(200)
    assert len(ann.streams) == opened
    page.evaluate(HIDE, False)
    while len(ann.streams) == opened:
        page.clock.run_for(1000)
        page.wait_for_timeout(20)
