"""Errors as HTML, for browsers that navigate to a page (docs/pages.md "How a page is made")."""

import msgspec
import pytest

from tests.harness.html_page import Page, check_policies
from tests.harness.service import begin, start

BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/nope", "/replays/", "/account/", "/robots.txt", "/daily/a/b", "//", "/%41"])
async def test_unknown_address_is_a_page_for_browsers(server, path):
    """The page has the error's status and code, HEAD has its length, and other clients get JSON."""
    answer = await server.ask("GET", path, BROWSER)
    assert answer.status == 404
    assert answer.headers["error-code"] == "not_found"
    assert (answer.headers["cache-control"], answer.headers["vary"]) == ("no-store", "Accept")
    check_policies(answer)
    assert "Page not found" in Page(answer.content).texts
    head = await server.ask("HEAD", path, BROWSER)
    assert (head.status, head.content) == (404, b"")
    assert head.headers["content-length"] == str(len(answer.content))
    assert (await server.ask("GET", path)).json == {"error": "not found"}


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        ("text/html", True),
        ("TEXT/HTML;q=0.5", True),
        ("application/json , text/html", True),
        ("*/*", False),
        ("text/*", False),
        ("application/json", False),
        ("text/html5", False),
        ("x-text/html", False),
        ("", False),
    ],
)
async def test_error_page_needs_text_html_in_accept(server, accept, is_page):
    """Programs send `*/*`."""
    answer = await server.ask("GET", "/nope", {"Accept": accept})
    assert answer.headers["content-type"].startswith("text/html" if is_page else "application/json")


@pytest.mark.parametrize("path", ["/api/nope", "/api", "/avatars", "/health/x", "/web/nope.js"])
async def test_addresses_for_programs_have_no_error_pages(server, path):
    """Below /api, /avatars, /health and /web errors are JSON for every Accept."""
    answer = await server.ask("GET", path, BROWSER)
    assert (answer.status, answer.json) == (404, {"error": "not found"})
    assert "vary" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_errors_of_other_methods_are_json(server, method):
    """No page of the service submits a form, so browsers get JSON too."""
    for path in ("/nope", "/replays"):
        answer = await server.ask(method, path, BROWSER)
        assert answer.headers["content-type"] == "application/json"


async def test_failing_page_returns_an_error_page(server, no_lost_failures):
    """Programs get the 500 as JSON."""
    path = "/replays/00000000-0000-4000-8000-000000000000"
    server.sql("ALTER TABLE replays RENAME TO elsewhere")
    try:
        failed = await server.ask("GET", path, BROWSER)
        assert (await server.ask("GET", path)).json == {"error": "internal server error"}
    finally:
        server.sql("ALTER TABLE elsewhere RENAME TO replays")
    no_lost_failures.clear()
    assert (failed.status, failed.headers["error-code"]) == (500, "internal")
    check_policies(failed)
    assert "Something went wrong" in Page(failed.content).texts


async def test_unavailable_service_returns_a_page_with_retry_after(reactor, postgres):
    """The page's script reads the seconds and retries."""
    node = begin(
        reactor, postgres.dsn.replace("dbname=postgres", "dbname=never"), handler_seconds=0.2, quiet_seconds=0.1
    )
    try:
        away = await node.ask("GET", "/daily/2026-04-26", BROWSER)
    finally:
        await node.service.stopService()
    assert (away.status, away.headers["error-code"]) == (503, "unavailable")
    check_policies(away)
    page = Page(away.content)
    assert "Back in a moment" in page.texts
    assert msgspec.json.decode(page.data) == {"retry_after": int(away.headers["retry-after"])}


async def test_errors_are_json_when_pages_are_off(reactor, shared_dsn):
    running = await start(reactor, shared_dsn, settings={"SOLISYNC_PAGES": "off"})
    try:
        assert (await running.ask("GET", "/nope", BROWSER)).json == {"error": "not found"}
    finally:
        await running.service.stopService()
