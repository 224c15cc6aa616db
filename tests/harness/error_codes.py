"""What holds for every answer under test: an error has a code of its status, which its route documents."""

import functools
import inspect
from datetime import UTC, datetime
from types import SimpleNamespace
from unittest.mock import Mock
from urllib.parse import quote

from solisync.access.rate_limit import AUTH, GUEST
from solisync.errors import STATUS
from solisync.web.app import Dispatcher
from solisync.web.resources import Resources
from solisync.web.resources.openapi import document
from solisync.web.route import ANY_ROUTE

WITHOUT_ROUTE = {*ANY_ROUTE, "body_too_large", "not_found", "method_not_allowed"}


@functools.cache
def table():
    """The route table, over nouns that have nothing to work with."""
    settings = SimpleNamespace(
        auth_limit=AUTH,
        guest_limit=GUEST,
        public_avatars=False,
        pages=True,
        site_name="",
        site_links=(),
        replay_quota_mib=0,
        streams=1,
    )
    given = (each.name for each in inspect.signature(Resources).parameters.values() if each.kind is each.KEYWORD_ONLY)
    mocks = dict.fromkeys(given, Mock()) | {"now": lambda: datetime.now(UTC)}
    return Resources(settings, Mock(), **mocks).routes(settings)


@functools.cache
def dispatcher():
    return Dispatcher(table())


@functools.cache
def openapi():
    """The OpenAPI document."""
    return document(table())


def check_error_code(status, headers, method=None, path=None):
    """Fail unless Error-Code is there for an error alone, known, and among the codes of the route, if one is given."""
    code = headers.get("error-code")
    if status < 400:
        assert code is None
        return
    assert STATUS.get(code) == status, (method, path, status, code)
    if path is not None:
        verb = "GET" if method == "HEAD" else method
        spelled = quote(path.partition("?")[0], safe="/:")  # as treq sends it
        route, _ = dispatcher().find(verb.encode("ascii"), spelled.encode("ascii"))
        assert code in (WITHOUT_ROUTE if route is None else route.codes), (method, path, status, code)
