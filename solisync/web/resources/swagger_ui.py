"""Swagger UI, which shows the OpenAPI document as a page, and works offline.

The package offapi contains Swagger UI. This module reads two of its files without importing the package: an import
would load that package's own pages, which have inline scripts. File names aren't a public API, so setup.py sets an
upper bound on the version. This page has nothing inline, which allows a strict Content-Security-Policy
(docs/security.md "Uploads").
"""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from ...errors import NotFound
from ..kept_replies import both_ways, unless_known
from ..page_build import DOCS_FILES, FILE_HEADERS
from ..route import PAGE, get
from ..wire.reply import Reply

# The icons of Swagger UI's style sheet and of the page are `data:` URLs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_MAP = re.compile(rb"/\*# sourceMappingURL=.+?\*/")  # offapi has no source maps, so debuggers would get a 404


class Docs:
    """Serves the page and its assets, which are read at the start."""

    tag: ClassVar[str] = "docs"

    def __init__(self) -> None:
        spec = find_spec("offapi")
        assert spec is not None
        assert spec.origin is not None
        swagger_ui = Path(spec.origin).parent
        files = {file.name: file.read_bytes() for file in DOCS_FILES.iterdir()}
        self._page = both_ways("page.html", files.pop("page.html"), {**FILE_HEADERS, "Content-Security-Policy": POLICY})
        files["swagger-ui.js"] = (swagger_ui / "swagger_bundle.js").read_bytes()
        files["swagger-ui.css"] = _MAP.sub(b"", (swagger_ui / "swagger_style.css").read_bytes())
        self._assets = {name: both_ways(name, body, FILE_HEADERS) for name, body in files.items()}

    @get("/api/docs", name="docs", summary="The API as a page for browsers", answer=PAGE)
    async def page(self, *, if_none_match: str | None, gzip: bool) -> Reply:
        """Return the page."""
        return unless_known(self._page[gzip], if_none_match)

    @get("/api/docs/{name}", name="docs_asset", tag="", summary="A part of that page")
    async def asset(self, *, name: str, if_none_match: str | None, gzip: bool) -> Reply:
        """Return a script or a style sheet of the page."""
        if name not in self._assets:
            raise NotFound()
        return unless_known(self._assets[name][gzip], if_none_match)
