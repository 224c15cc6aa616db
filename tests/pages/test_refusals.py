"""Tests of 429, 503 and a lost network: each call reports the trouble, loses no input, and can be retried."""

import re

import pytest

from tests.checking.uploads import game
from tests.harness.constants import PASSWORD
from tests.pages.visitor import Game, picture, until

TROUBLE = {
    429: {
        "status": 429,
        "headers": {"Retry-After": "1", "Error-Code": "rate_limited"},
        "json": {"error": "too many requests"},
    },
    503: {
        "status": 503,
        "headers": {"Retry-After": "1", "Error-Code": "unavailable"},
        "json": {"error": "service unavailable"},
    },
    0: None,
}
WORDS = {429: "Too many attempts.", 503: "The service is busy or restarting.", 0: "can’t be reached"}


class Trouble:
    """A refusal of every request to a path, until `over()` is called."""

    def __init__(self, visitor, pattern, status, method=None):
        self.answer = TROUBLE[status]
        self.method = method
        self.visitor = visitor
        self.pattern = re.compile(pattern)
        visitor.context.route(self.pattern, self._answer)

    def _answer(self, route):
        if self.method not in (None, route.request.method):
            route.fallback()
        elif self.answer is None:
            route.abort()
        else:
            route.fulfill(**self.answer)

    def over(self):
        self.visitor.context.unroute(self.pattern)


def again(page, place):
    """Press the button to try again, which is disabled after 429 until its time has passed."""
    button = page.locator(f"{place} button", has_text="Try again").first
    until(page, f"!document.querySelector('{place} button:disabled')")
    button.click()


@pytest.fixture
def ann(visit, site):
    """A player with a game, who appears on the boards."""
    ann = visit()
    ann.register()
    game_of_ann = Game(site, login=True)
    game_of_ann.seen_as("Ann")
    ann.replay = game_of_ann.upload(game())
    return ann


READS = {
    "/": [(r"/api/replays/recent", "#wins"), ("/api/sync/pull", "#standing")],
    "/replays": [(r"/api/replays/recent", "#list"), ("/api/daily-challenge", "#list")],
    "/daily": [("/api/boards/daily", "#winners")],
    "/leaderboard": [
        (r"/api/boards/verified(\?draw|\?$|$)", "#entries"),
        ("around=me", "#around"),
        ("/opt-in$", "#name"),
    ],
    "/account": [
        ("/api/me$", "#file-refused"),
        ("/api/me/replays", "#games"),
        ("/api/sessions$", "#devices"),
        ("/opt-in$", "#name"),
    ],
    "/replays/ID": [("/timeline$", "#why"), ("/api/boards/deals", "#others")],
}


@pytest.mark.parametrize("status", TROUBLE)
def test_failed_read_is_reported_and_can_be_retried(ann, status):
    """The test blocks live events, which would load the data without the button."""
    ann.context.route("**/api/events*", lambda route: route.abort())
    for path, reads in READS.items():
        for pattern, place in reads:
            if (status, pattern) == (0, "/api/sync/pull"):  # without a connection, the page shows the last answer
                continue
            trouble = Trouble(ann, pattern, status)
            if "around" in pattern:
                ann.context.route(
                    re.compile(r"/api/boards/verified\??$"),
                    lambda route: route.fulfill(json={"entries": [], "next": None}),
                )
            page = ann.open(path.replace("ID", ann.replay))
            page.wait_for_selector(f"{place} .refused")
            assert WORDS[status] in page.inner_text(f"{place} .refused"), (path, pattern)
            disabled, text = page.eval_on_selector(f"{place} button", "button => [button.disabled, button.innerText]")
            assert status != 429 or not disabled or "in 1 s" in text
            trouble.over()
            again(page, place)
            until(page, f"!document.querySelector('{place} .refused')")


@pytest.mark.parametrize("status", TROUBLE)
def test_forms_keep_what_was_typed(visit, site, status):
    Game(site)
    visitor = visit()
    page = visitor.open("/account")
    for form, name in (("in", "ann"), ("new", "bob")):
        page.fill(f"#{form}-name", name)
        page.fill(f"#{form}-password", PASSWORD)
        trouble = Trouble(visitor, "/api/session", status)
        page.click(f"#{form}-form button.main")
        page.wait_for_selector(f"#{form}-form .refused")
        assert WORDS[status] in page.inner_text(f"#{form}-form .refused")
        assert page.input_value(f"#{form}-password") == PASSWORD
        trouble.over()
        until(page, f"!document.querySelector('#{form}-form button').disabled")
        page.click(f"#{form}-form button.main")
        page.wait_for_selector("#in:not([hidden])")
        visitor.settle()
        page.click("#sign-out")
        page.wait_for_selector("#out:not([hidden])")


@pytest.mark.parametrize("status", TROUBLE)
def test_failed_change_is_reported_and_can_be_retried(ann, status):
    """The changes: avatar, listing, deletion, devices, password, export, sign-out, display name and leaderboard."""
    page = ann.open("/account")

    def tried(pattern, method, act, place, done):
        trouble = Trouble(ann, pattern, status, method)
        act()
        page.wait_for_selector(f"{place} .refused")
        assert WORDS[status] in page.inner_text(f"{place} .refused"), (pattern, method)
        trouble.over()
        if page.locator(f"{place} button", has_text="Try again").count():
            again(page, place)
        else:
            until(
                page, f"!document.querySelector('{place}').closest('form').querySelector('button:not([type])').disabled"
            )
            act()
        until(page, f"document.getElementById('said').textContent.includes('{done}')")

    page.set_input_files("#file", picture())
    page.wait_for_selector("#crop:not([hidden])")
    tried("/api/me/avatar", "PUT", lambda: page.click("#crop button.main"), "#crop .refusal", "avatar has changed")
    tried("/listed$", "PUT", lambda: page.click("#games input"), "#games td", "no longer public")
    assert not page.is_checked("#games input")
    tried("/api/me/export", "GET", lambda: page.click("#export"), "#export-refused", "download has started")
    page.evaluate("password.open = true")
    page.fill("#current", PASSWORD)
    page.fill("#next", PASSWORD)
    tried(
        "/session/password",
        "PUT",
        lambda: page.click("#password-form button.main"),
        "#password-form .refusal",
        "password",
    )
    page.click("#games button.danger")
    tried("/api/replays/", "DELETE", lambda: page.click("#game-delete"), "#game-refused", "was deleted")

    page = ann.open("/leaderboard")
    page.click("#name summary")
    page.fill("#display-name", "Anna")
    tried("/opt-in", "POST", lambda: page.click("#name-form button.main"), "#name-form .refusal", "You appear as")
    tried("/opt-in", "DELETE", lambda: page.click("#leave"), "#leave-refused", "left the leaderboard")

    page = ann.open("/account")
    page.click("#delete")
    page.fill("#delete-name", "ann")
    page.fill("#delete-password", PASSWORD)
    trouble = Trouble(ann, "/api/account", status)
    page.click("#delete-form button.danger")
    page.wait_for_selector("#delete-form .refused")
    assert page.input_value("#delete-password") == PASSWORD
    trouble.over()
    until(page, "!document.querySelector('#delete-form button').disabled")
    page.click("#delete-form button.danger")
    page.wait_for_url(f"{ann.site}/")


def test_rate_limit_of_the_service_counts_down(visit, site):
    """The service refuses the eleventh attempt within a minute."""
    visitor = visit()
    page = visitor.open("/account")
    button = "document.querySelector('#in-form button')"
    for _ in range(11):
        page.fill("#in-name", "nobody")
        page.fill("#in-password", "wrong password")
        page.click("#in-form button.main")
        until(page, f"!{button}.disabled || {button}.textContent.includes(' in ')")
    assert "Too many attempts" in page.inner_text("#in-form .refused")
    assert re.match(r"Sign in in \d+ s", page.inner_text("#in-form button.main"))
    assert page.input_value("#in-name") == "nobody"


def test_loaded_replay_plays_without_a_network(ann):
    page = ann.open(f"/replays/{ann.replay}")
    page.wait_for_selector("#player.ready")
    ann.context.set_offline(True)
    page.click("#last")
    assert "Won with" in page.inner_text("#now")
    ann.context.set_offline(False)
