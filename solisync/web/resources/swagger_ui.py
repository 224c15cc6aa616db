"""Swagger UI, which shows the OpenAPI document as a page; served from here, so that it works offline.

The package offapi contains Swagger UI. Two of its files are read and none is imported: an import would keep its own
pages in memory, which have inline scripts. File names are no interface, so setup.py bounds its version from above. The
page here has nothing inline, which allows a strict Content-Security-Policy (docs/security.md "Uploads").
"""

import re
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from ...errors import NotFound
from ..documents import unless_known
from ..wire.reply import Reply

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",  # the icons of Swagger UI's style sheet and of the page
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
)
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>solisync – the HTTP interface</title>
<link rel="icon" href="data:image/svg+xml,\
<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect width='16' height='16' rx='3' fill='%23175c3a'/>\
<path d='M8 2C7 5 3 6 3 9a2.3 2.3 0 0 0 4 1.5L6 14h4L9 10.5A2.3 2.3 0 0 0 13 9C13 6 9 5 8 2' fill='%23fff'/></svg>">
<link rel="stylesheet" href="/api/docs/swagger-ui.css">
<link rel="stylesheet" href="/api/docs/page.css">
<script defer src="/api/docs/swagger-ui.js"></script>
<script defer src="/api/docs/page.js"></script>
</head>
<body>
<main id="interface"></main>
<noscript>This page needs JavaScript. It shows what is in <a href="/api/openapi.json">openapi.json</a>.</noscript>
</body>
</html>
"""
SCRIPT = """\
SwaggerUIBundle({
  url: "/api/openapi.json",
  dom_id: "#interface",
  validatorUrl: null, // else it would ask a public service for its opinion
});
"""
STYLE = """\
body { margin: 0; }
"""
_MAP = re.compile(rb"/\*# sourceMappingURL=.+?\*/")  # offapi has no source maps: a debugger would get a 404


class Docs:
    """Serves the page and its assets, which are read at the start."""

    def __init__(self) -> None:
        spec = find_spec("offapi")
        assert spec is not None
        assert spec.origin is not None
        swagger_ui = Path(spec.origin).parent
        self._page = _file(PAGE.encode(), "text/html", {"Content-Security-Policy": POLICY})
        self._assets = {
            "swagger-ui.js": _file((swagger_ui / "swagger_bundle.js").read_bytes(), "text/javascript"),
            "swagger-ui.css": _file(_MAP.sub(b"", (swagger_ui / "swagger_style.css").read_bytes()), "text/css"),
            "page.js": _file(SCRIPT.encode(), "text/javascript"),
            "page.css": _file(STYLE.encode(), "text/css"),
        }

    async def page(self, *, if_none_match: str | None) -> Reply:
        """The page."""
        return unless_known(self._page, if_none_match)

    async def asset(self, *, name: str, if_none_match: str | None) -> Reply:
        """A script or style sheet of the page."""
        if name not in self._assets:
            raise NotFound()
        return unless_known(self._assets[name], if_none_match)


def _file(body: bytes, media_type: str, headers: dict[str, str] | None = None) -> Reply:
    # Caches must revalidate each time, else one could mix the assets of two versions.
    kept = {"ETag": f'"{sha256(body).hexdigest()[:32]}"', "Cache-Control": "public, no-cache"}
    return Reply(body=body, content_type=f"{media_type}; charset=utf-8", headers=kept | (headers or {}))
