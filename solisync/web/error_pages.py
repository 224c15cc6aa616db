"""Errors as pages, for browsers that ask for a page (docs/pages.md "How a page is made")."""

import re
from collections.abc import Callable

import msgspec

from .resources.html_pages import Pages
from .wire.reply import Reply
from .wire.request import Request

_NOT_PAGES = {b"api", b"avatars", b"health", b"web"}
_NAMES_HTML = re.compile(r"(?:^|,)[ \t]*text/html[ \t]*(?:[;,]|$)", re.ASCII | re.IGNORECASE)

Presentation = Callable[[Request, Reply], Reply]


def as_page(pages: Pages) -> Presentation:
    """How errors are presented: as a page if it has one, and the request is a browser's that asks for a page."""

    def present(request: Request, error: Reply) -> Reply:
        if request.method not in (b"GET", b"HEAD") or request.path[1:].partition(b"/")[0] in _NOT_PAGES:
            return error
        page = pages.error(error.status, error.headers.get("Retry-After"))
        if page is None or not _NAMES_HTML.search(request.field(b"accept") or ""):
            return error
        return msgspec.structs.replace(page, status=error.status, headers={**page.headers, **error.headers})

    return present


def as_json(_: Request, error: Reply) -> Reply:
    """How errors are presented where there are no pages."""
    return error
