"""The OpenAPI document as a page; tests/fire/test_docs_page.py looks at it in a browser.

Source: docs/protocol.md "The service".
"""

import re
from html.parser import HTMLParser

import pytest

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


class Page(HTMLParser):
    """The references and the inline elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.references = []
        self.inline = []
        self._open = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self._open = tag
        self.references += [value for name, value in attributes if name in ("href", "src")]
        self.inline += [name for name, _ in attributes if name == "style" or name.startswith("on")]

    def handle_data(self, data):
        if self._open in ("script", "style") and data.strip():
            self.inline.append(data)


async def test_page_has_a_strict_content_policy(server):
    """The page may only load and call this service, run nothing inline, and be in no frame."""
    answer = await server.ask("GET", "/api/docs")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert Page(answer.content.decode()).inline == []


async def test_service_serves_everything_that_the_page_refers_to(server):
    """Scripts and style sheets have their types; no link or resource is on another host."""
    answer = await server.ask("GET", "/api/docs")
    references = Page(answer.content.decode()).references
    icon, *paths = references
    assert icon.startswith("data:image/svg+xml,")
    assert "/api/openapi.json" in paths
    assert len(paths) == 5
    for path in paths:
        part = await server.ask("GET", path)
        assert part.status == 200
        assert part.headers["content-type"] == TYPES.get(path[path.rindex(".") :], "application/json")
        assert part.headers["x-content-type-options"] == "nosniff"
        if path.endswith(".css"):
            assert re.findall(rb"@import|url\((?!['\"]?data:)|sourceMappingURL", part.content) == []


@pytest.mark.parametrize("path", ["/api/docs", "/api/docs/swagger-ui.js", "/api/docs/page.css"])
async def test_browser_that_has_the_page_gets_a_304(server, path):
    """Caches keep the page but ask each time. HEAD returns the same headers."""
    answer = await server.ask("GET", path)
    assert answer.headers["cache-control"] == "public, no-cache"
    again = await server.ask("GET", path, {"If-None-Match": answer.headers["etag"]})
    assert (again.status, again.content) == (304, b"")
    assert again.headers["etag"] == answer.headers["etag"]
    other = await server.ask("GET", path, {"If-None-Match": '"other"'})
    assert (other.status, other.content) == (200, answer.content)
    head = await server.ask("HEAD", path)
    assert (head.status, head.content) == (200, b"")
    assert head.headers["etag"] == answer.headers["etag"]


@pytest.mark.parametrize(
    "name", ["nope.js", "page.html", "", "swagger_bundle.js", "..", "%2e%2e%2fsetup.py", "page.js/", "page.js/x"]
)
async def test_page_directory_serves_no_other_file(server, name):
    answer = await server.ask("GET", f"/api/docs/{name}")
    assert (answer.status, answer.json) == (404, {"error": "not found"})


async def test_document_lists_the_page_but_not_its_parts(server):
    paths = (await server.ask("GET", "/api/openapi.json")).json["paths"]
    assert set(paths["/api/docs"]["get"]["responses"]["200"]["content"]) == {"text/html"}
    assert not [path for path in paths if path.startswith("/api/docs/")]
