"""A rule for all responses under test: every error has a code of its status, which its route documents."""

import functools
import re
from dataclasses import fields
from datetime import UTC, datetime
from types import SimpleNamespace
from unittest.mock import Mock
from urllib.parse import quote

from solisync.access.rate_limit import AUTH, GUEST
from solisync.errors import STATUS
from solisync.web.process_parts import Parts
from solisync.web.resources import player_routes
from solisync.web.resources.html_pages import Pages
from solisync.web.resources.openapi import document
from solisync.web.route import ANY_ROUTE

WITHOUT_ROUTE = {*ANY_ROUTE, "body_too_large", "not_found", "method_not_allowed"}


@functools.cache
def table():
    """The route table, over resources without any parts."""
    settings = SimpleNamespace(
        auth_limit=AUTH,
        guest_limit=GUEST,
        public_avatars=False,
        pages=True,
        replay_quota_mib=0,
        streams=1,
    )
    mocks = dict.fromkeys((field.name for field in fields(Parts)), Mock())
    parts = Parts(**mocks | {"settings": settings, "now": lambda: datetime.now(UTC)})
    pages = Pages(database=parts.database, site_name="", site_url=None, site_links=(), public_avatars=False)
    return player_routes(parts, pages)


@functools.cache
def openapi():
    """The OpenAPI document."""
    return document(table())


def find_route(routes, method, path):
    """Return the route of a method and path, or None; a variable of a path is any text without "/" and "%"."""
    verb, path = "GET" if method == "HEAD" else method, path.partition("?")[0]
    plain = any(route.path == path for route in routes)  # such a path is none of a route with variables
    found = [
        route
        for route in routes
        if route.method == verb and (route.path == path if plain else pattern_of(route.path).fullmatch(path))
    ]
    return found[0] if found else None


@functools.cache
def pattern_of(path):
    return re.compile(re.sub(r"\\{\w+\\}", "[^/%]+", re.escape(path)))


def check_error_code(status, headers, method=None, path=None):
    """Fail unless Error-Code is in errors alone, is known, and is among the codes of the route, if one is given."""
    code = headers.get("error-code")
    if status < 400:
        assert code is None
        return
    assert STATUS.get(code) == status, (method, path, status, code)
    if path is not None:
        route = find_route(table(), method, quote(path.partition("?")[0], safe="/:"))  # as treq sends it
        assert code in (WITHOUT_ROUTE if route is None else route.codes), (method, path, status, code)
