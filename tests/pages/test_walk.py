"""The whole way of a player, from registering to deleting the account."""

from urllib.parse import quote

import pytest

from tests.checking.uploads import game
from tests.harness.constants import PASSWORD
from tests.pages.visitor import Game, picture, until


def test_the_walk(visit, site):
    """Register, avatar, opt in, a won game, the board, the link elsewhere, deletion, 404."""
    ann = visit()
    ann.register()
    page = ann.page
    assert page.inner_text("h1") == "ann"

    page.set_input_files("#file", {"name": "me.jpg", "mimeType": "image/jpeg", "buffer": picture()})
    page.wait_for_selector("#crop:not([hidden])")
    page.fill("#zoom", "2")
    page.click("#crop button.main")
    page.wait_for_selector("#avatar img")
    page.wait_for_selector("#me img")  # in the header too
    assert until(page, "document.querySelector('#avatar img').naturalWidth") == 512
    token = {"Authorization": f"Bearer {page.evaluate('JSON.parse(sessionStorage.solisync).token')}"}
    path = ann.context.request.get("/api/me", headers=token).json()["avatar_url"]
    stored = ann.context.request.get(path, headers=token).body()
    assert b"taken at home" not in stored
    assert b"Exif" not in stored

    page = ann.open("/leaderboard")
    page.fill("#display-name", "Ann <b>&")
    page.click("#name-form button.main")
    until(page, "document.getElementById('said').textContent.includes('You appear as')")

    replay = game()
    replay_id = Game(site, login=True).upload(replay)
    page = ann.open("/leaderboard")
    page.wait_for_selector("#entries a")
    assert page.inner_text("#entries a") == "Ann <b>&"
    assert page.inner_text("#seen") == "You appear as “Ann <b>&”."
    page.click("#tab-reported")
    page.wait_for_selector("#reports .tag")

    stranger = visit(width=390)
    shared = stranger.open(f"/replays/{replay_id}")
    shared.wait_for_selector("#player.ready")
    assert shared.inner_text("h1") == f"ann won with {replay['final_score']} points"
    shared.select_option("#speed", "8×")
    shared.fill("#seek", str(int(shared.get_attribute("#seek", "max")) - 6))
    shared.click("#play")
    until(shared, f"document.getElementById('said').textContent.includes('Won with {replay['final_score']} points')")

    page = ann.open(f"/replays/{replay_id}")
    page.uncheck("#listed")
    until(page, "document.getElementById('said').textContent.includes('no longer public')")
    stranger.open("/replays")
    assert shared.locator("#list a").count() == 0

    page = ann.open("/account")
    with page.expect_download() as download:
        page.click("#export")
    assert download.value.suggested_filename == "solisync-ann.json"
    page.click("#delete")
    page.fill("#delete-name", "anna")
    page.fill("#delete-password", PASSWORD)
    page.click("#delete-form button.danger")
    assert "not your user name" in until(page, "document.querySelector('#delete-form .refusal').textContent")
    page.fill("#delete-name", "ann")
    page.click("#delete-form button.danger")
    page.wait_for_url(f"{site}/")
    assert page.inner_text("#me") == "Sign in"
    assert not ann.context.cookies()

    answer = shared.goto(f"/replays/{replay_id}")
    assert answer.status == 404
    assert shared.inner_text("h1") == "Nothing here"


def test_an_avatar_can_be_removed(visit):
    """By a button that is there as long as there is an avatar: here, in the header, and on other pages later."""
    ann = visit()
    ann.register()
    page = ann.page
    assert page.locator("#avatar-remove").is_hidden()
    page.set_input_files("#file", {"name": "me.jpg", "mimeType": "image/jpeg", "buffer": picture()})
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


def test_the_account_is_ones_own(visit):
    """Password, devices, games and signing out, without a mouse where that is hard."""
    ann = visit()
    ann.register()
    elsewhere = visit()
    elsewhere.sign_in()
    game_of_ann = Game(ann.site, login=True)
    first, second = game_of_ann.upload(game(0)), game_of_ann.upload(game(1))
    page = ann.open("/account")
    assert page.locator("#games tbody tr").count() == 2
    page.locator("#games button.danger").first.click()
    page.click("#game-delete")
    until(page, "document.getElementById('said').textContent.includes('is deleted')")
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
    page.fill("#next", "another password")
    page.click("#password-form button.main")
    until(page, "document.querySelector('#password-form .refused')?.textContent.includes('not your current password')")
    assert page.input_value("#next") == "another password"
    assert page.get_attribute("#current", "aria-invalid") == "true"
    page.evaluate("password.open = true")
    page.fill("#current", PASSWORD)
    page.click("#password-form button.main")
    until(page, "document.getElementById('said').textContent.includes('password has changed')")
    until(page, "document.querySelectorAll('#devices tbody tr').length === 1")

    page.click("#sign-out")
    page.wait_for_selector("#out:not([hidden])")
    assert not ann.context.cookies()
    ann.sign_in(password="another password")


def test_signing_in_leads_back(visitor, site):
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
def test_signing_in_leads_nowhere_else(visitor, site, wanted, leads):
    """However `next` spells another site, the browser stays on this one."""
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
