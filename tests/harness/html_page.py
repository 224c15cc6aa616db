"""Reading a page for players like a browser, and the policies of all pages."""

from html.parser import HTMLParser

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
    " trusted-types solisync; manifest-src 'self'; worker-src 'self'"
)
VOID = {"meta", "link", "img", "br", "input", "hr"}


class Page(HTMLParser):
    """A page as a browser parses it: elements with attributes, texts, title and data."""

    def __init__(self, content):
        super().__init__()
        self.elements = []
        self.texts = []
        self.named = {}
        self.title = ""
        self.data = ""
        self.inline = []
        self._open = []
        self.feed(content.decode())
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self._open.append((tag, dict(attributes)))
        self.elements.append((tag, tuple(name for name, _ in attributes)))
        found = dict(attributes)
        if "content" in found:
            self.named[found.get("name") or found.get("property")] = found["content"]
        self.inline += [name for name in found if name == "style" or name.startswith("on")]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self._open.pop()[0] == tag

    def handle_data(self, data):
        tag, attributes = self._open[-1] if self._open else ("", {})
        if tag == "title":
            self.title += data
        elif tag == "script" and attributes.get("type") == "application/json":
            assert attributes["id"] == "data"
            self.data += data
        elif tag in ("script", "style"):
            self.inline.append(data)
        else:
            self.texts.append(data)


def check_policies(answer):
    """Check that a response is HTML with the policies of all pages, and sets no cookie."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    allowed = [feature for feature in answer.headers["permissions-policy"].split(", ") if not feature.endswith("=()")]
    assert allowed == []
    assert "set-cookie" not in answer.headers
