"""The OpenAPI document as a page for people (contract §4): Swagger UI, served from here, so that it works offline.

Swagger UI comes with the package offapi, of which two files are read and nothing is run: importing it would fill the
memory with pages of its own, which have their scripts inline. (The names of files are no interface, which is why
setup.py bounds it from above.) Here nothing is inline, so that the policy below can be strict: the page runs nothing
and asks for nothing but what this service serves.
"""

import re
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from ..errors import NotFound
from .conditional import matches
from .wire.reply import Reply

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",  # the icons in Swagger UI's style sheet, and the page's own
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
.swagger-ui .opblock-tag { display: none; } /* the routes are one group, which has no name */
"""
_MAP = re.compile(rb"/\*# sourceMappingURL=.+?\*/")  # offapi has no maps: a browser's debugger would find a 404


class Docs:
    """Serves the page and what it consists of, as read at the start."""

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
        return _unless_known(self._page, if_none_match)

    async def asset(self, *, name: str, if_none_match: str | None) -> Reply:
        """A script or style sheet of the page."""
        if name not in self._assets:
            raise NotFound("not found")
        return _unless_known(self._assets[name], if_none_match)


def _file(body: bytes, media_type: str, headers: dict[str, str] | None = None) -> Reply:
    # Caches ask each time, else one could mix the parts of two versions.
    kept = {"ETag": f'"{sha256(body).hexdigest()[:32]}"', "Cache-Control": "public, no-cache"}
    return Reply(body=body, content_type=f"{media_type}; charset=utf-8", headers=kept | (headers or {}))


def _unless_known(file: Reply, if_none_match: str | None) -> Reply:
    if matches(if_none_match, file.headers["ETag"]):
        return Reply(status=304, content_type=None, headers=file.headers)
    return file
