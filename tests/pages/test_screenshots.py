"""Pictures of all pages for docs/pages.md, written to the directory in SCREENSHOTS."""

import io
import os
from pathlib import Path

from tests.checking.uploads import game
from tests.harness.constants import PASSWORD, PATIENCE
from tests.pages.player import STUCK, Hand, keep, opened, won_game
from tests.pages.visitor import Game, picture, until

NAMES = ("Ann", "Bob", "Carla", "Dimitri", "Eve", "Felix")


def proved(page):
    until(page, "document.getElementById('result').innerText.includes('✓')", PATIENCE)


def forgotten(page):
    """Scroll to the form for a recovery code."""
    page.click("#forgot summary")
    page.wait_for_selector("#recover-form")
    page.evaluate("forgot.scrollIntoView()")


def new_codes(page):
    """Make recovery codes and scroll to them."""
    page.fill("#codes-password", PASSWORD)
    page.click("#codes-form button")
    page.wait_for_selector(".codes li")
    page.evaluate("codes.scrollIntoView()")


def lose_the_network(visitor):
    """Win a game without a network, on a page that was loaded before."""
    replay, moves = won_game(2)
    visitor.context.route("**/api/replays", lambda route: route.abort())
    visitor.context.route("**/api/sync/**", lambda route: route.abort())
    keep(visitor.page, replay, moves[:-1], ms=250_000)
    page = opened(visitor)
    Hand(page).drag(moves[-1])
    until(page, "document.getElementById('outbox').textContent.includes('Not connected')")


def pictures_of_states(visit, take, **options):
    """Picture a stuck game, a game that can't be stored, a game in another tab, and the page before its deal."""
    guest = visit(**options)
    keep(guest.page, *STUCK, ms=64_000)
    take("play-stuck", "/play", visitor=guest)
    replay, moves = won_game(1)
    keep(guest.page, replay, moves[:150], ms=192_000)
    opened(guest)
    playing, guest.page = guest.page, guest.context.new_page()
    take(
        "play-elsewhere",
        "/play",
        lambda page: until(page, "document.getElementById('notice').textContent"),
        visitor=guest,
    )
    playing.close()
    keep(guest.page, replay, moves, ms=312_000)
    take(
        "play-signed-out",
        "/play",
        lambda page: until(page, "result.textContent.includes('Create a free account')"),
        visitor=guest,
    )
    early = visit(**options)
    early.context.route("**/web/*/play.js", lambda route: route.fulfill(content_type="text/javascript", body=""))
    early.page.goto("/play")
    take("play-loading", visitor=early)
    busy = {"status": 429, "headers": {"Error-Code": "rate_limited", "Retry-After": "30"}, "json": {"error": "x"}}
    refused = visit(**options)
    keep(refused.page, replay, moves[:30], ms=51_000)
    refused.context.route("**/api/daily-challenge", lambda route: route.fulfill(**busy))
    take("play-refused", "/play?daily", visitor=refused)
    forgetful = visit(**options)
    forgetful.context.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error(); } })")
    take("play-nothing-kept", "/play?deal=42&draw=three", visitor=forgetful)


def test_pictures_of_all_pages(visit, site, tmp_path):
    """Each page is pictured on a wide screen in the light scheme and on a narrow one in the dark scheme."""
    from PIL import Image

    target = Path(os.environ.get("SCREENSHOTS") or tmp_path)
    target.mkdir(exist_ok=True)
    for number, name in enumerate(NAMES):
        player = Game(site, name.lower())
        player.seen_as(name)
        shared = player.upload(game(number, undo=number > 3))
    ann = Game(site, "ann", login=True)
    watched = ann.upload(game(1))
    ann.upload(game(2))
    for width, scheme, kind in ((1280, "light", "wide"), (390, "dark", "narrow")):
        visitor = visit(width=width, scheme=scheme, reduced_motion="reduce", service_workers="allow")

        def take(name, path=None, act=None, visitor=visitor, kind=kind):
            page = visitor.open(path) if path else visitor.page
            if act:
                act(page)
                visitor.settle()
            page.evaluate("document.activeElement.blur()")
            image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            image.save(target / f"{name}-{kind}.webp", quality=72, method=6)

        take("home", "/")
        take("replays", "/replays")
        take("missing", f"/replays/{shared[:-1]}")
        take("sign-in", "/account")
        take("forgotten", "/account", forgotten)
        take("reset", "/reset#x")
        visitor.sign_in()
        if kind == "wide":
            visitor.page.set_input_files("#file", picture())
            visitor.page.click("#crop button.main")
            visitor.page.wait_for_selector("#me img")
        replay, moves = won_game(1)
        keep(visitor.page, replay, moves[:150], ms=192_000)
        take("play", "/play", lambda page: (page.click("#hint"), page.wait_for_selector("#board .hint")))
        keep(visitor.page, replay, moves, ms=312_000)
        take("play-won", "/play", proved)
        pictures_of_states(visit, take, width=width, scheme=scheme, reduced_motion="reduce", service_workers="allow")
        take("replay", f"/replays/{watched}?move=96", lambda page: page.wait_for_selector("#player.ready"))
        take("leaderboard", "/leaderboard")
        take("daily", "/daily")
        take("player", "/players/ann")
        take("account", "/account", lambda page: page.wait_for_selector("#avatar img"))
        take("codes", "/account", new_codes)
        lose_the_network(visitor)
        take("play-offline")
    pictures = [file for file in target.glob("*.webp") if not file.name.startswith("console-")]
    assert len(pictures) == 42
    assert max(file.stat().st_size for file in pictures) < 80_000
