"""Accessibility checks: axe finds no broken rule on any page, in any state, colour scheme or width."""

from tests.checking.uploads import game, refuted
from tests.harness.constants import PASSWORD, PATIENCE
from tests.harness.postgres import run_sql
from tests.pages.player import STUCK, Hand, choose, keep, opened, won_game
from tests.pages.visitor import SIZES, Game, picture, until

SUSPEND = """
    INSERT INTO suspensions (user_id, since, until, message, was_visible)
    SELECT id, now(), '2199-05-01', 'Please read the rules.', false FROM users WHERE username = %s
"""


RUN = """async options => {
  const { violations } = await axe.run({ resultTypes: ["violations"], ...options });
  const told = ({ html, failureSummary }) => [html.slice(0, 120), failureSummary];
  return violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map(told)]);
}"""
# Only the contrast rules of axe depend on the colour scheme.
SCHEMES = (("light", {}), ("dark", {"runOnly": ["color-contrast"]}))


class Judge:
    """Runs axe on pages in their current state, in each width and colour scheme, and collects the findings."""

    def __init__(self):
        from axe_playwright_python.sync_playwright import Axe

        self.script = Axe().axe_script
        self.checks = 0
        self.found = []

    def look(self, visitor, state, sizes=SIZES):
        # The page's policy allows this way of adding axe, which leaves one more global in the page.
        page = visitor.page
        page.evaluate(self.script)
        for width, height in sizes.items():
            page.set_viewport_size({"width": width, "height": height})
            for scheme, options in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                self.found += [(state, width, scheme, *violation) for violation in page.evaluate(RUN, options)]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                self.found.append((state, width, "wider than the screen"))
        page.emulate_media(color_scheme="light")
        self.checks += 1


def look_at_play(visitor, look):
    """Check the page to play, from the deal to the win, with all settings and dialogs."""
    deal = "/play?deal=42&draw=three"
    look(visitor, deal, "a deal")
    look(visitor, deal, "a hint", lambda page: (page.click("#hint"), page.wait_for_selector("#board .hint")))
    look(visitor, deal, "a selection", lambda page: (choose(page, tap=False), Hand(page).select("t1")))
    for name in ("four", "large", "left"):
        look(visitor, deal, name, lambda page, name=name: choose(page, **{name: True}))
    look(visitor, deal, "keys to play", lambda page: page.click("#help-open"))
    look(visitor, deal, "the board as text", lambda page: page.click("#read"))
    look(visitor, deal, "leaving", lambda page: (Hand(page).stock(), page.click("#new")))
    look(visitor, "/play?deal=01", "no such deal")
    keep(visitor.page, *STUCK)
    look(visitor, "/play", "stuck", lambda page: page.wait_for_selector("#stuck:not([hidden])"))
    replay, moves = won_game(2)
    keep(visitor.page, {**replay, "seed": 1}, [None] * 24)
    look(visitor, "/play", "a game in play")
    keep(visitor.page, replay, moves)
    look(visitor, "/play", "won", lambda page: page.wait_for_selector("#won:not([hidden])"))


def share(page):
    """Ask for the link of a win, in a browser that can neither share nor copy it."""
    page.evaluate("""() => {
      for (const name of ["share", "clipboard"]) Object.defineProperty(navigator, name, { value: undefined });
    }""")
    page.locator("#won-next button", has_text="Share").click(timeout=PATIENCE * 1000)
    page.wait_for_selector("#won-next input")


def look_at_play_without(visitor, judge):
    """Check the page to play before its cards have arrived, and without the deal of the day."""
    context, page = visitor.context, visitor.page
    context.route("**/web/*/play.js", lambda route: route.fulfill(content_type="text/javascript", body=""))
    page.goto("/play")
    judge.look(visitor, "a game being loaded")
    context.unroute("**/web/*/play.js")
    busy = {"status": 503, "headers": {"Error-Code": "unavailable"}, "json": {"error": "service unavailable"}}
    context.route("**/api/daily-challenge", lambda route: route.fulfill(**busy))
    visitor.open("/play?daily")
    judge.look(visitor, "no deal of the day")
    context.unroute("**/api/daily-challenge")


def look_at_carried_cards(visitor, judge):
    """Check a drag, which ends when the size of the window changes."""
    for size in SIZES.items():
        visitor.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
        page = opened(visitor, "/play?deal=42&draw=three")
        x, y = Hand(page).centre("t6")
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 30, y + 30)
        page.mouse.move(x + 60, y + 60)
        page.wait_for_selector(".carried")
        judge.look(visitor, "cards are carried", dict([size]))
        assert page.locator(".carried").count() == 1
        page.mouse.up()


def submitted(form, **fields):
    """Return a function that fills in a form and submits it, to be refused."""

    def submit(page):
        for name, value in fields.items():
            page.fill(f"#{form}-{name}", value)
        page.click(f"#{form}-form button:not([type])")
        page.wait_for_selector(f"#{form}-form .refused")

    return submit


def look_at_recovery(visitor, look):
    """Check the forms for a forgotten password, by code and by link: with a visible password, and refused."""
    open_form = lambda page: page.click("#forgot summary")  # noqa: E731
    refuse_code = submitted("recover", name="ann", code="0000-0000-0000-0000", password=PASSWORD)
    look(visitor, "/account", "a password forgotten", open_form)
    look(visitor, "/account", "a code refused", lambda page: (open_form(page), refuse_code(page)))
    look(visitor, "/reset", "half a link")
    look(visitor, "/reset#x", "a link, the password shown", lambda page: page.get_by_label("Show password").check())
    look(visitor, "/reset#x", "a link refused", submitted("reset", password=PASSWORD))


def test_axe_finds_nothing_on_the_players_pages(visit, running, site, figure):
    judge = Judge()
    out = visit(reduced_motion="reduce")  # axe must not measure colours during a transition

    def look(visitor, path, state, act=None):
        page = visitor.open(path)
        if act:
            act(page)
            visitor.settle()
        judge.look(visitor, state)

    for path in ("/", "/replays", "/daily", "/leaderboard", "/account"):
        look(out, path, f"{path}, empty, signed out")
    look_at_recovery(out, look)
    ann = Game(site)
    ann.seen_as("Ann")
    replay_id, taken_back = ann.upload(game(0)), ann.upload(game(0, undo=True))
    for number in range(1, 6):
        ann.upload(game(number))
    for path in (
        "/",
        "/replays?check=all",
        "/daily",
        "/daily/2026-04-26",
        "/replays/nothing",
        "/nothing",
        "/players/ann",
        "/players/nobody",
        "/daily/9999-12-31",
    ):
        look(out, path, f"{path}, signed out")
    look(out, f"/replays/{ann.upload(refuted())}", "refuted")
    player = "#player.ready"
    look(out, f"/replays/{replay_id}", "the deal", lambda page: page.wait_for_selector(player))
    look(out, f"/replays/{taken_back}?move=40", "at a move", lambda page: page.wait_for_selector(player))
    look(out, f"/replays/{replay_id}", "playing", lambda page: page.click("#play"))
    look(out, f"/replays/{replay_id}", "won", lambda page: page.click("#last"))
    look(out, f"/replays/{replay_id}", "four colours", lambda page: page.check("#colours"))
    look(out, f"/replays/{replay_id}", "keys", lambda page: page.click("#help-open"))
    look(out, "/replays?mode=Zen&draw=DrawThree", "filtered")

    look_at_play(out, look)
    look_at_carried_cards(out, judge)
    look_at_play_without(out, judge)

    look(out, "/account", "refused", submitted("in", name="ann", password="wrong wrong"))
    Game(site, "bob")
    run_sql(running.dsn, SUSPEND, ("bob",))
    look(out, "/account", "suspended", submitted("in", name="bob", password=PASSWORD))

    def look_for(name):
        def act(page):
            page.fill("#find-name", name)
            page.click("#find button")
            until(page, "document.getElementById('find-refused').textContent")

        return act

    look(out, "/replays", "no such player", look_for("nobody"))
    out.context.route("**/api/replays/recent*", lambda route: route.abort())
    look(out, "/replays", "the network is cut", lambda page: page.wait_for_selector(".refused"))

    inside = visit(reduced_motion="reduce")
    inside.sign_in()
    for path in (
        "/",
        "/daily",
        "/leaderboard",
        "/account",
        "/players/ann",
        f"/replays/{replay_id}",
        "/replays?check=all",
        "/players/nobody",
        "/nothing",
    ):
        look(inside, path, f"{path}, signed in")
    look(
        inside,
        "/leaderboard",
        "self-reported",
        lambda page: (page.click("#tab-reported"), page.wait_for_selector("#reports table")),
    )
    keep(inside.page, *won_game(2))
    look(inside, "/play", "a win to share", share)
    look(inside, f"/replays/{replay_id}", "deleting a replay", lambda page: page.click("#delete"))
    look(inside, "/account", "deleting a game", lambda page: page.locator("#games button.danger").first.click())

    def make_codes(page):
        page.fill("#codes-password", PASSWORD)
        page.click("#codes-form button")
        page.wait_for_selector(".codes li")

    look(inside, "/account", "codes refused", submitted("codes", password="wrong wrong"))
    look(inside, "/account", "new codes", make_codes)
    look(
        inside,
        "/account",
        "codes that are left",
        lambda page: until(page, "/8 unused codes/.test(document.body.innerText)"),
    )
    look(inside, "/account", "deleting the account", lambda page: page.click("#delete"))

    def crop(page):
        page.set_input_files("#file", picture())
        page.wait_for_selector("#crop:not([hidden])")

    look(inside, "/account", "cropping", crop)
    inside.context.route("**/api/boards/**", lambda route: None)
    inside.page.goto("/leaderboard")
    inside.page.wait_for_selector("#entries .loading")
    judge.look(inside, "being loaded")
    inside.context.unroute("**/api/boards/**")
    inside.open("/account")
    crop(inside.page)
    page = inside.page
    page.click("#crop button.main")
    page.wait_for_selector("#me img")
    judge.look(inside, "with an avatar")
    page.evaluate("password.open = true")
    page.fill("#current", "wrong wrong")
    page.fill("#next", PASSWORD)
    page.click("#password-form button.main")
    until(page, "document.querySelector('#password-form .refused')")
    judge.look(inside, "password refused")
    run_sql(running.dsn, "INSERT INTO profile_locks SELECT id, now() FROM users WHERE username = 'ann'")
    look(inside, "/account", "locked", submitted("name"))
    Game(site, login=True).call("DELETE", "/api/account")
    page.wait_for_selector("#over", timeout=PATIENCE * 1000)
    judge.look(inside, "deleted elsewhere")
    figure(f"axe: {judge.checks} states at {len(SIZES)} widths, {len(judge.found)} violations")
    assert judge.found == []
