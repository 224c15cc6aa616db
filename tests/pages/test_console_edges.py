"""The console's pages at their edges: names that players chose to do harm, errors, and a zoom of 400 %."""

import pytest

from tests.checking.uploads import game
from tests.harness.postgres import run_sql
from tests.pages.admin import HOSTILE, PLAYER, choose, paths, sign_in
from tests.pages.test_axe import Judge
from tests.pages.visitor import Game

ZOOMED = {320: 256}  # what 1280 x 1024 is at 400 %
SIZES = {**ZOOMED, 1280: 860}
INSIDE = "[...document.querySelectorAll('dialog, #undo')].every(each => each.scrollWidth <= each.clientWidth)"
MARKUP = "\"'><img src=x onerror=document.title=1>\u202e"  # no username may be so, but what if one is


def answer(page, path, status, code, **headers):
    """Let the service answer this from now on, wherever the page asks for the path."""
    fulfilled = {"status": status, "headers": {"Error-Code": code, **headers}, "json": {"error": "no"}}
    page.route(path, lambda route: route.fulfill(**fulfilled))


def look_for_harm(page):
    """No name has run a script, made an element, or made the page wider than the screen."""
    assert page.title().endswith("solisync console")
    assert page.locator("img[src='x']").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.evaluate(INSIDE)


@pytest.mark.parametrize(
    "username", ["W" * 32, "\ufdfd" * 32, MARKUP, HOSTILE], ids=["wide", "widest", "markup", "marks"]
)
def test_names_stay_text_in_what_is_offered(console, running, site, username):
    """In the dialog of an act, beside Undo, and where a game is watched."""
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


def test_names_of_what_every_object_has_are_names(console, running, site):
    """Players with such names are found, listed, opened and acted upon."""
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


def test_all_can_be_read_at_400_percent(console, running):
    """Every page fits into 320 x 256, the dialog of an act scrolls, and axe has nothing to say of them."""
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


def test_an_unknown_list_to_review_is_that_of_names(console, running):
    """Also one that is named like a property of all objects."""
    visitor = console()
    page = sign_in(visitor, running.dsn, "/review?kind=constructor")
    assert page.text_content("nav [aria-current=page] >> text=Names") == "Names"


def test_axe_has_nothing_to_say_of_errors(console, running):
    """A busy service, a session that has ended, a player who is gone, an act that is refused, and too many acts."""
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
