"""The OpenAPI page in a real browser: all of it is shown, it works, and its policy has nothing to object to."""

import json
import re
import time

import pytest
from twisted.internet.threads import deferToThread

from tests.fire.browser import Browser

SHOWN = """[...document.querySelectorAll('.opblock-summary')].map(summary =>
  summary.querySelector('.opblock-summary-method').textContent + ' ' +
  summary.querySelector('[data-path]').dataset.path)"""
OPERATIONS = "[...document.querySelectorAll('.opblock')].map(operation => operation.id)"
PROPOSED = (
    "health-live_alias", "challenge-daily_challenge", "sessions-login", "sync-push", "sync-pull", "leaderboard-opt_in",
    "leaderboard-leaderboard", "replays-upload_replay", "replays-recent_replays", "analytics-report",
    "leaderboard-opt_out", "accounts-delete_account",
)  # fmt: skip

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture
def browser(tmp_path):
    """A browser that has never been here."""
    browser = Browser(tmp_path)
    yield browser
    browser.close()


def try_out(browser, operation):
    """Send the request of an operation (tag-id) as the page proposes it; its status and JSON as the page shows them."""
    block = f"#operations-{operation}"
    browser.click(f"{block} .opblock-summary-control")
    browser.click(f"{block} .try-out__btn")
    browser.click(f"{block} .execute")
    answer = f"document.querySelector('{block} .live-responses-table .response')"
    status = browser.wait(f"{answer}?.querySelector('.response-col_status')?.textContent")
    return int(re.match(r"\d+", status)[0]), json.loads(browser.wait(f"{answer}.querySelector('code')?.textContent"))


def ours(url, server):
    """Whether a URL is served here, or is no request at all."""
    return url.startswith((f"{server.url}/api/", "data:"))


async def test_the_page_shows_every_route_and_breaks_no_rule(server, browser, figure):
    """Whatever is unfolded on it, there is no error, no warning and no request to elsewhere."""
    paths = (await server.ask("GET", "/api/openapi.json")).json["paths"]
    routes = [f"{method.upper()} {path}" for path, operations in paths.items() for method in operations]
    began = time.monotonic()

    def look():
        browser.open(f"{server.url}/api/docs")
        browser.wait("document.querySelector('.opblock-summary') && true")
        figure(f"{len(routes)} routes on the screen {time.monotonic() - began:.1f} s after a browser first asked")
        assert browser.evaluate("document.title") == "solisync – the HTTP interface"
        assert sorted(browser.evaluate(SHOWN)) == sorted(routes)
        for operation in browser.evaluate(OPERATIONS):  # one by one: Swagger UI draws all that is unfolded each time
            browser.click(f"#{operation} .opblock-summary-control")
            browser.wait(f"document.querySelector('#{operation} .responses-wrapper') && true")
            browser.click(f"#{operation} .opblock-summary-control")
        assert browser.complaints == []
        assert [url for url in browser.requested if not ours(url, server)] == []
        # The same eyes do see what is forbidden.
        assert browser.evaluate("fetch('http://127.0.0.1:9/').catch(error => 'refused')") == "refused"
        assert "Content Security Policy" in str(browser.complaints)

    await deferToThread(look)


async def test_what_the_page_proposes_is_accepted(server, browser):
    """Its example registers a player, whose token then opens what is protected; every other example is a 200 too."""

    def look():
        browser.open(f"{server.url}/api/docs")
        status, tokens = try_out(browser, "accounts-register")
        assert status == 200
        browser.click(".btn.authorize")
        browser.type(".auth-container input", tokens["access_token"])
        browser.click(".auth-btn-wrapper .authorize")
        browser.click(".auth-btn-wrapper .btn-done")
        assert try_out(browser, "accounts-me")[1]["username"] == "ann"
        answers = {operation: try_out(browser, operation) for operation in PROPOSED}
        assert {operation: status for operation, (status, _) in answers.items()} == dict.fromkeys(PROPOSED, 200)
        (replay,) = answers["replays-recent_replays"][1]
        assert replay["id"] == answers["replays-upload_replay"][1]["id"]
        assert browser.complaints == []

    await deferToThread(look)
