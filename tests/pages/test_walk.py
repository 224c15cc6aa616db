"""Test of a player's path through the pages, from registering to deleting the account."""

from tests.checking.uploads import game
from tests.harness.constants import PASSWORD
from tests.pages.visitor import Game, picture, until


def test_player_registers_plays_and_deletes_the_account(visit, site):
    """The steps: registration, avatar, opt-in, a won game, the board, the link in another browser, deletion, 404."""
    ann = visit()
    ann.register()
    page = ann.page
    assert page.inner_text("h1") == "ann"

    page.set_input_files("#file", picture())
    page.wait_for_selector("#crop:not([hidden])")
    page.fill("#zoom", "2")
    page.click("#crop button.main")
    page.wait_for_selector("#avatar img")
    page.wait_for_selector("#me img")  # the header has the avatar too
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
    assert "isn’t your username" in until(page, "document.querySelector('#delete-form .refusal').textContent")
    page.fill("#delete-name", "ann")
    page.click("#delete-form button.danger")
    page.wait_for_url(f"{site}/")
    assert page.inner_text("#me") == "Sign in"
    assert not ann.context.cookies()

    answer = shared.goto(f"/replays/{replay_id}")
    assert answer.status == 404
    assert shared.inner_text("h1") == "Page not found"
