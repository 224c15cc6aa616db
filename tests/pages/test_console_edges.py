"""Edge cases of the console's pages: malicious names, errors, and a zoom of 400 %."""

import pytest

from tests.checking.uploads import game
from tests.harness.postgres import run_sql
from tests.pages.admin import HOSTILE, PLAYER, choose, paths, sign_in
from tests.pages.test_axe import Judge
from tests.pages.visitor import Game

ZOOMED = {320: 256}  # the size of 1280 x 1024 at a zoom of 400 %
SIZES = {**ZOOMED, 1280: 860}
INSIDE = "[...document.querySelectorAll('dialog, #undo')].every(each => each.scrollWidth <= each.clientWidth)"
MARKUP = "\"'><img src=x onerror=document.title=1>\u202e"  # the API refuses such a username; a page must still be safe


def answer(page, path, status, code, **headers):
    """Replace all further answers for a path by this one."""
    fulfilled = {"status": status, "headers": {"Error-Code": code, **headers}, "json": {"error": "no"}}
    page.route(path, lambda route: route.fulfill(**fulfilled))


def look_for_harm(page):
    """Check that no name has run a script, made an element, or made the page wider than the screen."""
    assert page.title().endswith("solisync console")
    assert page.locator("img[src='x']").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.evaluate(INSIDE)


@pytest.mark.parametrize(
    "username", ["W" * 32, "\ufdfd" * 32, MARKUP, HOSTILE], ids=["wide", "widest", "markup", "marks"]
)
def test_names_stay_text_in_dialogs_and_buttons(console, running, site, username):
    """The dialog of an act, the text beside Undo and the page of a replay show the name as text."""
    visitor = console(width=320)
    replay_id = Game(site, "bob").upload(game(3))
    run_sql(running.dsn, "UPDATE users SET username = %s WHERE username = 'bob'", (username,))
    run_sql(running.dsn, "UPDATE leaderboard SET display_name = %s", (username[:32],))
    ((bob,),) = run_sql(running.dsn, "SELECT user_id::text FROM replays WHERE id = %s", (replay_id,))
    page = sign_in(visitor, running.dsn, f"/players/{bob}")
    page.click("button:has-text('Suspend …')")
    look_for_harm(page)
    assert username in page.text_content("#act-title")
    page.keyboard.press("Escape")
    choose(page, "Lock …", "name")
    page.wait_for_selector("#undo button")
    look_for_harm(page)
    assert username in page.text_content("#undo")
    page.click("#undo button")
    page.wait_for_selector("#undo", state="detached")
    visitor.open("/review?kind=names")
    look_for_harm(page)
    visitor.open(f"/replays/{replay_id}")
    look_for_harm(page)
    page.click("text=Watch")
    page.wait_for_selector("#player.ready")
    look_for_harm(page)
    assert page.text_content("#place a bdi") == username


def test_names_of_object_properties_work_as_usernames(console, running, site):
    """The console finds, lists and opens players named like a property of all JavaScript objects, and acts on them."""
    names = ("__proto__", "constructor", "toString", "valueOf")
    page = sign_in(console(), running.dsn)
    for name in names:
        player = Game(site, name)
        player.seen_as(name)
        player.upload(game(3))
        page.goto("/players")
        page.fill("#q", name)
        page.press("#q", "Enter")
        page.wait_for_selector(f"#title bdi:has-text('{name}')")
        choose(page, "Change username …", "name", username=f"{name}1")
        page.wait_for_selector(f"#title bdi:has-text('{name}1')")
        page.click("#undo button")
        page.wait_for_selector("#undo", state="detached")
    for path in ("/", "/replays", "/acts"):
        page.goto(path)
        for name in names:
            page.wait_for_selector(f"td:has-text('{name}'), th:has-text('{name}')")


def test_every_page_fits_at_a_zoom_of_400_percent(console, running):
    """Every page fits into 320 x 256, the dialog of an act scrolls, and axe finds nothing."""
    judge, visitor = Judge(), console()
    page = sign_in(visitor, running.dsn)
    for path in paths(running.dsn):
        visitor.open(path)
        judge.look(visitor, path, ZOOMED)
    visitor.open(f"/players/{PLAYER}")
    choose(page, "Suspend …", "spam", message="stop")
    page.wait_for_selector("#undo")
    judge.look(visitor, "what can be taken back", ZOOMED)
    assert judge.found == []


def test_unknown_review_list_opens_the_list_of_names(console, running):
    """The same is true of a list named like a property of all JavaScript objects."""
    visitor = console()
    page = sign_in(visitor, running.dsn, "/review?kind=constructor")
    assert page.text_content("nav [aria-current=page] >> text=Names") == "Names"


def test_axe_finds_nothing_on_errors_of_the_console(console, running):
    """The errors are a busy service, an ended session, a missing player, a refused act and too many acts."""
    judge, visitor = Judge(), console()
    page = sign_in(visitor, running.dsn)
    answer(page, "**/api/admin/players?**", 503, "unavailable", **{"Retry-After": "2"})
    visitor.open("/players?q=nn&where=part")
    judge.look(visitor, "busy", SIZES)
    page.unroute("**/api/admin/players?**")
    page.click("text=Try again")
    page.wait_for_selector("tbody tr")
    visitor.open(f"/players/{PLAYER[:-1]}0")
    judge.look(visitor, "no such player", SIZES)
    visitor.open("/replays/nonsense")
    judge.look(visitor, "no such replay", SIZES)
    run_sql(
        running.dsn,
        "INSERT INTO users (id, username, password_hash, created_at) VALUES (gen_random_uuid(), 'bob', 'x', now())",
    )
    visitor.open(f"/players/{PLAYER}")
    page.click("button:has-text('Change username …')")
    page.fill("#act-username", "bob")
    page.click("#act button:not([type])")
    page.wait_for_selector("#act .refused")
    judge.look(visitor, "a name that is taken", SIZES)
    answer(page, "**/username", 429, "rate_limited", **{"Retry-After": "600"})
    page.click("#act button:not([type])")
    page.wait_for_selector("#act button:not([type])[disabled]")
    judge.look(visitor, "too many acts", SIZES)
    page.keyboard.press("Escape")
    run_sql(running.dsn, "DELETE FROM admin_sessions")
    page.goto("/acts")
    page.wait_for_selector("#sign-in")
    judge.look(visitor, "the session has ended", SIZES)
    page.fill("#sign-in-name", "root")
    page.fill("#sign-in-code", "nonsense")
    page.click("#sign-in button.main")
    page.wait_for_selector("#sign-in .refused")
    judge.look(visitor, "a wrong code", SIZES)
    assert judge.found == []
