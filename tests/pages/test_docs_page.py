"""Tests of the OpenAPI page in a browser: it shows every route, works, and keeps its content security policy."""

import json
import re

import pytest

from tests.harness.constants import PATIENCE

PROPOSED = (
    "health-live_alias", "challenge-daily_challenge", "sessions-login", "sync-push", "sync-pull", "leaderboard-opt_in",
    "leaderboard-leaderboard", "replays-upload_replay", "replays-recent_replays", "analytics-report",
    "leaderboard-opt_out", "accounts-delete_account",
)  # fmt: skip


@pytest.fixture
def page(visitor):
    """The OpenAPI page, once it shows its first route."""
    visitor.page.set_default_timeout(PATIENCE * 1000)
    visitor.page.goto("/api/docs")
    visitor.page.wait_for_selector(".opblock-summary")
    return visitor.page


def try_out(page, operation):
    """Send an operation's (tag-id) proposed request. Return the status and JSON that the page shows."""
    block = page.locator(f"#operations-{operation}")
    for control in (".opblock-summary-control", ".try-out__btn", ".execute"):
        block.locator(control).click()
    answer = block.locator(".live-responses-table .response")
    status = answer.locator(".response-col_status").text_content()
    return int(re.match(r"\d+", status)[0]), json.loads(answer.locator("code").first.text_content())


def test_page_shows_every_route_and_breaks_no_rule(visitor, page):
    """Every unfolded block works without errors, warnings and requests to other hosts."""
    paths = page.context.request.get("/api/openapi.json").json()["paths"]
    shown = page.locator(".opblock-summary").evaluate_all(
        "all => all.map(each => each.querySelector('.opblock-summary-method').textContent + ' '"
        " + each.querySelector('[data-path]').dataset.path)"
    )
    assert sorted(shown) == sorted(f"{method.upper()} {path}" for path in paths for method in paths[path])
    assert page.title() == "solisync – HTTP API"
    for block in page.locator(".opblock").all():  # one by one: Swagger UI redraws every unfolded block each time
        block.locator(".opblock-summary-control").click()
        block.locator(".responses-wrapper").wait_for()
        block.locator(".opblock-summary-control").click()
    assert (visitor.complaints, visitor.elsewhere) == ([], [])
    # The visitor fixture fails on any violation of the policy.
    assert page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 'refused')") == "refused"
    assert "Content Security Policy" in str(visitor.complaints)
    visitor.complaints.clear()
    visitor.requested.clear()


def test_examples_of_the_page_are_accepted(page):
    """The first example registers a player, whose token opens protected routes. Every other example returns 200 too."""
    status, tokens = try_out(page, "accounts-register")
    assert status == 200
    page.click(".btn.authorize")
    page.fill(".auth-container input", tokens["access_token"])
    page.click(".auth-btn-wrapper .authorize")
    page.click(".auth-btn-wrapper .btn-done")
    assert try_out(page, "accounts-me")[1]["username"] == "ann"
    answers = {operation: try_out(page, operation) for operation in PROPOSED}
    assert {operation: status for operation, (status, _) in answers.items()} == dict.fromkeys(PROPOSED, 200)
    (replay,) = answers["replays-recent_replays"][1]
    assert replay["id"] == answers["replays-upload_replay"][1]["id"]
