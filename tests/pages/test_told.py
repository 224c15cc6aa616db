"""Players see what they have done, what is wrong in words of their own, and a page where nothing is."""

import pytest

from tests.harness.constants import PASSWORD
from tests.pages.visitor import until

SHOWN = "document.getElementById('said').classList.contains('toast') && document.getElementById('said').textContent"


@pytest.fixture
def ann(visit):
    ann = visit()
    ann.register()
    return ann


def test_what_succeeds_is_seen_for_a_while(ann):
    """In the window, wherever the page has been scrolled to, until some seconds have passed."""
    page = ann.open("/account")
    page.evaluate("password.open = true")
    page.fill("#current", PASSWORD)
    page.fill("#next", PASSWORD)
    page.clock.install()
    page.click("#password-form button.main")
    assert until(page, SHOWN) == "Your password has changed."
    box = page.locator("#said").bounding_box()
    assert box["width"] > 100
    assert 0 < box["y"] < box["y"] + box["height"] < page.viewport_size["height"]
    page.clock.run_for(7_000)
    assert page.evaluate(SHOWN) is False
    assert page.text_content("#said").strip() == "Your password has changed."


def test_a_player_without_games_is_sent_to_play(ann):
    """In the account, of progress and of games, in words that do not ask to sign in here again."""
    page = ann.open("/account")
    assert page.locator("#standing a[href='/play'], #games a[href='/play']").count() == 2


def test_a_wrong_password_is_told_by_where_it_is_wrong(visit, ann):
    """Signing in, changing it, and deleting the account."""
    page = ann.open("/account")
    page.evaluate("password.open = true")
    page.fill("#current", "wrong wrong")
    page.fill("#next", "x")
    page.click("#password-form button.main")
    until(page, "document.querySelector('#password-form .refused')?.textContent.includes('at least 8 characters')")
    assert page.get_attribute("#next", "aria-invalid") == "true"
    page.fill("#next", PASSWORD)
    page.click("#password-form button.main")
    until(page, "document.querySelector('#password-form .refused')?.textContent.includes('not your current password')")
    assert page.evaluate("document.activeElement.id") == "current"
    page = visit().open("/account")
    page.fill("#in-name", "ann")
    page.fill("#in-password", "wrong wrong")
    page.click("#in-form button.main")
    until(page, "document.querySelector('#in-form .refused')?.textContent === 'Wrong user name or password.'")


def test_a_page_that_is_away_comes_back_by_itself(visitor, site):
    """It asks again after the time it was told, and shows the page as soon as that is there."""
    away = "<script type=module src=/web/away.js></script><script type=application/json id=data>{}</script>"
    body = away.replace("{}", '{"retry_after": 1}') + "<p id=said></p><a id=me></a>"
    visitor.context.add_init_script("Math.random = () => 0.01")
    visitor.context.route(
        "**/replays",
        lambda route: (
            route.fulfill(status=503, content_type="text/html", body=body)
            if visitor.requested.count(f"{site}/replays") < 3
            else route.continue_()
        ),
    )
    visitor.page.goto("/replays")
    visitor.page.wait_for_selector("h1")
    assert visitor.page.inner_text("h1") == "Replays"


def test_an_unknown_address_leads_on(visitor):
    page = visitor.page
    assert page.goto("/nothing").status == 404
    assert page.inner_text("h1") == "Nothing here"
    page.get_by_role("link", name="Go to the start").click()
    page.wait_for_url(f"{visitor.site}/")
