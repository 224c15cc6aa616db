"""Tests of live events on pages: a browser opens one stream, and its pages poll without one."""

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
LISTENS = "web('live.js').then(({ streaming }) => streaming())"
HIDE = """hidden => {
  Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture
def ann(visit):
    """A signed-in player, with a list of the streams that her browser has opened."""
    ann = visit()
    ann.register()
    ann.streams = []
    ann.context.on("request", lambda request: "/api/events" in request.url and ann.streams.append(request))
    return ann


@contextlib.contextmanager
def no_checks(running):
    """Stop the checkers for the duration of the block."""
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
    """Run a command of the operator while the service runs."""
    command = [BIN / "solisync", *words, "--yes"]
    subprocess.run(command, env=clean_environment(**environment(running.dsn)), check=True, capture_output=True)


def listening(page):
    """Wait until a page receives events, from its own stream or another tab's."""
    until(page, LISTENS, PATIENCE)


def test_verdict_appears_without_a_reload(ann, running):
    """The page of the replay shows and announces the verdict, and the account's list of games shows it."""
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


def test_tabs_share_one_stream(ann):
    """One tab reads the stream and passes events on to the others. Another tab takes over when it closes."""
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


def test_leaderboard_updates_when_a_game_counts(ann):
    """The focus stays on its row, and the page announces a change once."""
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


def test_daily_board_updates_when_a_game_counts(ann, running):
    """The number of players who have won is updated too. Before she wins, Ann sees no link to the win."""
    page = ann.open("/daily")
    assert page.inner_text("#won").startswith("No player")
    listening(page)
    seed = page.evaluate("JSON.parse(document.getElementById('data').textContent).deal")
    bob = Game(ann.site, "bob")
    check(running.dsn, bob.upload({**game(), "seed": int(seed), "moves": []}), 600)
    bob.seen_as("Bob")
    until(page, "document.querySelector('#winners tbody')?.textContent.includes('Bob')", PATIENCE)
    assert page.inner_text("#won").startswith("1 player on the leaderboard won it.")


def test_list_of_devices_updates_after_a_push(ann):
    """The list shows the other device that has pushed."""
    page = ann.open("/account")
    listening(page)
    assert page.locator("#devices tbody tr").count() == 1
    Game(ann.site, login=True).call("POST", "/api/sync/push", progress_of(stats__games_played=1))
    until(page, "document.querySelectorAll('#devices tbody tr').length === 2", PATIENCE)


def test_suspension_appears_in_all_tabs(ann, running):
    """The tabs show the operator's message."""
    page = ann.open("/account")
    other = ann.context.new_page()
    other.goto("/")
    for tab in (page, other):
        listening(tab)
    administrate(running, "users", "suspend", "ann", "--message", "Take a break.")
    for tab in (page, other):
        until(tab, "document.getElementById('over')?.innerText.includes('Take a break.')", PATIENCE)


def test_signing_out_elsewhere_is_announced(ann):
    """A player who signs out in this browser sees no such message."""
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


def test_deletion_elsewhere_is_announced(ann):
    page = ann.open("/account")
    listening(page)
    Game(ann.site, login=True).call("DELETE", "/api/account")
    until(page, "document.getElementById('over')?.innerText.startsWith('This account has been deleted.')", PATIENCE)
    page.wait_for_selector("#out:not([hidden])")


@pytest.mark.parametrize("status", [404, 503])
def test_pages_poll_when_the_stream_is_refused(ann, running, status):
    ann.context.route(STREAM, lambda route: route.fulfill(status=status, headers={"Retry-After": "30"}, body="{}"))
    player = Game(ann.site, login=True)
    with no_checks(running):
        replay_id = player.call("POST", "/api/replays", game())["id"]
        page = ann.open(f"/replays/{replay_id}")
    page.wait_for_selector(VERIFIED, timeout=PATIENCE * 1000)


def test_hidden_tab_closes_its_stream_after_five_minutes(ann):
    """The tab opens a stream again when it becomes visible."""
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
