"""Tests of the account page: signing up and in, progress, name, picture, password, devices and games."""

import json
from urllib.parse import quote

import pytest

from tests.checking.uploads import game
from tests.harness.constants import PASSWORD
from tests.harness.payloads import progress_of
from tests.harness.postgres import run_sql
from tests.pages.player import Fingers
from tests.pages.visitor import Game, picture, until

SHOWN = "document.getElementById('said').classList.contains('toast') && document.getElementById('said').textContent"


@pytest.fixture
def ann(visit):
    """The account page of a player who has just registered."""
    ann = visit()
    ann.register()
    return ann


TYPED, COMPOSED = "cafe\u0301 au lait", "caf\u00e9 au lait"  # look equal


def test_password_that_looks_equal_is_equal(visit, site):
    """Pages send passwords composed. A player whose older password isn't can sign in, and gets a composed one."""
    api = Game(site, "api")
    api.token = None
    ann = visit()
    ann.register(password=TYPED)
    assert api.call("POST", "/api/auth/login", {"username": "ann", "password": COMPOSED})
    api.call("POST", "/api/auth/register", {"username": "bob", "password": TYPED})
    bob = visit()
    bob.sign_in("bob", TYPED)
    page = bob.page
    page.click("#password summary")
    page.fill("#current", TYPED)
    page.fill("#next", TYPED)
    page.click("#password-form button.main")
    until(page, f"{SHOWN} === 'Your password has changed.'")
    assert api.call("POST", "/api/auth/login", {"username": "bob", "password": COMPOSED})


def test_account_link_opens_the_sign_up_form(visitor):
    page = visitor.open("/")
    page.get_by_role("link", name="Create an account").click()
    until(page, "document.activeElement.id === 'new-name'")
    page.fill("#new-password", "correct horse")
    page.locator("#new-form .reveal").check()
    assert page.get_attribute("#new-password", "type") == "text"


def test_account_forms_explain_refusals(visitor, site):
    """The explanation is in plain words, at the field that it concerns."""
    Game(site)
    page = visitor.open("/account")
    for form, name, password, words, field in (
        ("new", "ann", PASSWORD, "That username is taken. Please choose another.", "new-name"),
        ("new", "a!", PASSWORD, "Choose a username of 3 to 32 characters.", "new-name"),
        ("new", "bob", "short", "Choose a password of at least 8 characters.", "new-password"),
        ("in", "ann", "wrong wrong", "Wrong username or password.", "in-password"),
    ):
        page.fill(f"#{form}-name", name)
        page.fill(f"#{form}-password", password)
        page.click(f"#{form}-form button.main")
        until(page, f"document.querySelector('#{form}-form .refused')?.textContent === {json.dumps(words)}")
        assert page.evaluate("document.activeElement.id") == field
        described = page.get_attribute(f"#{field}", "aria-describedby").split()
        assert words in " ".join(page.text_content(f"#{id}") for id in described)


def test_signing_in_returns_to_the_page_before(visitor, site):
    Game(site)
    page = visitor.open("/leaderboard")
    assert "chose to appear" in page.inner_text("#asked")
    page.click("#sign-in")
    page.fill("#in-name", "ann")
    page.fill("#in-password", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site}/leaderboard")
    page.wait_for_selector("#boards:not([hidden])")


@pytest.mark.parametrize(
    ("wanted", "leads"),
    [
        ("https://evil.example/", "/account"),
        ("//evil.example/", "/account"),
        ("///evil.example/", "/account"),
        ("\\\\evil.example", "/account"),
        ("/\t/evil.example", "/account"),
        ("javascript:alert(1)", "/account"),
        ("data:text/html,x", "/account"),
        ("blob:{site}/x", "/account"),
        ("//[", "/account"),
        ("/.//evil.example/in", "//evil.example/in"),
        ("/..//evil.example/in", "//evil.example/in"),
        ("/x/..//evil.example/in", "//evil.example/in"),
        ("/./\\evil.example/in", "//evil.example/in"),
        ("/%2e//evil.example/in", "//evil.example/in"),
        ("{site}//evil.example/in", "//evil.example/in"),
        ("replays?mode=Zen", "/replays?mode=Zen"),
    ],
)
def test_signing_in_never_leaves_the_site(visitor, site, wanted, leads):
    """The browser stays on this site for every spelling of another one in `next`."""
    Game(site)
    visitor.context.route(lambda url: "://evil.example" in url, lambda route: route.abort())
    page = visitor.open(f"/account?next={quote(wanted.format(site=site))}")
    page.fill("#in-name", "ann")
    page.fill("#in-password", PASSWORD)
    page.keyboard.press("Enter")
    if leads == "/account":
        page.wait_for_selector("#in:not([hidden])")
        visitor.settle()
        assert page.url.startswith(f"{site}/account?")
    else:
        page.wait_for_url(lambda url: url == f"{site}{leads}")


def test_progress_appears_on_the_start_and_account_pages(ann, visit, site):
    """The pages show the progress that games have pushed. The account links to the game until the first push."""
    assert "No games yet" in ann.page.inner_text("#standing")
    assert ann.page.locator("#standing a[href='/play'], #games a[href='/play']").count() == 2
    stats = {"games_played": 1140, "games_won": 61, "best_single_score": 690, "fastest_win_seconds": 142}
    pushed = progress_of(**{f"stats__{name}": value for name, value in stats.items()})
    Game(site, login=True).call("POST", "/api/sync/push", pushed)
    for path in ("/", "/account"):
        facts = ann.open(path).inner_text("#standing")
        for fact in ("61 of 1,140", "690", "2:22", "Not won yet"):
            assert fact in facts
    assert ann.open("/").inner_text("h1") == "Welcome back, ann"
    assert visit().open("/").is_hidden("#statistics")


def test_display_name_form_works_in_the_account_and_on_the_leaderboard(ann):
    """The forms show the name before an entry has it, and let the player leave the leaderboard."""
    page = ann.page
    page.fill("#display-name", "Newcomer N.")
    page.click("#name-form button.main")
    until(page, "document.getElementById('seen').textContent === 'You appear as “Newcomer N.”.'")
    page = ann.open("/leaderboard")
    assert page.inner_text("#seen") == "You appear as “Newcomer N.”."
    assert page.input_value("#display-name") == "Newcomer N."
    page.click("#name summary")
    page.click("#leave")
    until(page, "document.getElementById('said').textContent === 'You have left the leaderboard.'")
    assert "choose to appear" in page.inner_text("#seen")
    assert page.locator("#leave").count() == 0
    assert page.input_value("#display-name") == "Newcomer N."


def test_avatar_can_be_removed(ann):
    """The button is visible only while there is an avatar. The header and other pages drop the picture too."""
    page = ann.page
    assert page.locator("#avatar-remove").is_hidden()
    page.set_input_files("#file", picture())
    page.click("#crop button.main")
    page.wait_for_selector("#me img")
    page.click("#avatar-remove")
    until(page, "document.getElementById('said').textContent.includes('has been removed')")
    assert page.locator("#avatar-remove").is_hidden()
    assert page.evaluate("document.activeElement.id") == "file"
    assert page.locator("#avatar img, #me img").count() == 0
    page = ann.open("/account")
    page.wait_for_selector("#avatar span")
    assert page.locator("#me img").count() == 0


def test_picture_crop_can_be_dragged_and_cancelled(ann):
    """The mouse replaces the sliders, and cancelling changes nothing."""
    page = ann.page
    page.set_input_files("#file", picture())
    page.wait_for_selector("#crop:not([hidden])")
    box = page.locator("#crop canvas").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 100, steps=4)
    page.mouse.up()
    assert float(page.input_value("#x")) > 0.5
    assert float(page.input_value("#y")) == 0.5
    page.click("#crop button:has-text('Cancel')")
    assert page.is_hidden("#crop")
    assert page.locator("#avatar img").count() == 0


def test_picture_is_enlarged_by_moving_two_fingers_apart(ann):
    page = ann.page
    page.set_input_files("#file", picture())
    page.wait_for_selector("#crop:not([hidden])")
    Fingers(page).spread(page.locator("#crop canvas").bounding_box())
    assert float(page.input_value("#zoom")) > 1.5


def test_account_manages_password_devices_and_games(ann, visit):
    """The player deletes and unlists games, ends another device's session, changes the password and signs out."""
    elsewhere = visit()
    elsewhere.sign_in()
    game_of_ann = Game(ann.site, login=True)
    first, second = game_of_ann.upload(game(0)), game_of_ann.upload(game(1))
    page = ann.open("/account")
    assert page.locator("#games tbody tr").count() == 2
    page.locator("#games button.danger").first.click()
    page.click("#game-delete")
    until(page, "document.getElementById('said').textContent.includes('was deleted')")
    assert page.evaluate("document.activeElement.id") == "games-heading"
    assert page.locator("#games tbody a").get_attribute("href") == f"/replays/{first}"
    assert ann.context.request.get(f"/api/replays/{second}/verdict").status == 404
    page.locator("#games input").uncheck()
    until(page, "document.getElementById('said').textContent.includes('no longer public')")

    assert page.locator("#devices tbody tr").count() == 3
    assert page.locator("#devices .tag").count() == 1
    page.locator("#devices tr:not(:has(.tag)) button").first.click()
    until(page, "document.querySelectorAll('#devices tbody tr').length === 2")

    page.evaluate("password.open = true")
    page.fill("#current", "wrong wrong")
    page.fill("#next", "x")
    page.click("#password-form button.main")
    until(page, "document.querySelector('#password-form .refused')?.textContent.includes('at least 8 characters')")
    assert page.get_attribute("#next", "aria-invalid") == "true"
    page.fill("#next", "another password")
    page.click("#password-form button.main")
    until(
        page, "document.querySelector('#password-form .refused')?.textContent.includes('isn’t your current password')"
    )
    assert page.input_value("#next") == "another password"
    assert page.get_attribute("#current", "aria-invalid") == "true"
    assert page.evaluate("document.activeElement.id") == "current"
    page.fill("#current", PASSWORD)
    page.click("#password-form button.main")
    until(page, "document.getElementById('said').textContent.includes('password has changed')")
    until(page, "document.querySelectorAll('#devices tbody tr').length === 1")

    page.click("#sign-out")
    page.wait_for_selector("#out:not([hidden])")
    assert not ann.context.cookies()
    ann.sign_in(password="another password")


def test_success_message_stays_in_the_window_for_seconds(ann):
    """The message is visible at any scroll position until some seconds have passed."""
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


def test_button_signs_out_all_other_devices(ann, site):
    """The device with the button stays signed in."""
    for _ in range(3):
        Game(site, login=True)
    page = ann.open("/account")
    page.click("#sign-out-others")
    until(page, "document.querySelectorAll('#devices tbody tr').length === 1")
    assert page.locator("#devices .tag").inner_text() == "This browser"
    assert page.is_hidden("#sign-out-others")


def test_picture_that_no_browser_can_show_leaves_the_initial(ann, site):
    """The service knows only the beginning of a picture."""
    token = Game(site, login=True).token
    request = {"method": "PUT", "headers": {"Authorization": f"Bearer {token}", "Content-Type": "image/png"}}
    image = "new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 1, 2, 3])"
    asked = f"async (more) => (await fetch('/api/me/avatar', {{ ...more, body: {image} }})).status"
    assert ann.page.evaluate(asked, request) == 200
    page = ann.open("/account")
    until(page, "document.querySelector('#me .initial')?.textContent === 'A'")
    until(page, "document.querySelector('#avatar .initial')?.textContent === 'A'")


def test_renamed_player_has_the_new_name_everywhere(ann, site, running):
    """The header, the player's own replay and the form to delete the account use the new name."""
    replay_id = Game(site, login=True).upload(game())
    run_sql(running.dsn, "UPDATE users SET username = 'anna' WHERE username = 'ann'")
    page = ann.open(f"/replays/{replay_id}")
    page.wait_for_selector("#own:not([hidden])")
    until(page, "document.getElementById('me').textContent.endsWith('anna')")
    page = ann.open("/account")
    assert page.inner_text("h1") == "anna"
    page.click("#delete")
    page.fill("#delete-name", "anna")
    page.fill("#delete-password", PASSWORD)
    page.click("#delete-form button.danger")
    page.wait_for_url(f"{site}/")
