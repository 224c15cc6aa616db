"""Routes in klein's URL map, found once for each request."""

import re
from contextlib import suppress
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.access.tokens import Tokens
from solisync.errors import MethodNotAllowed, NotFound, Refused
from solisync.web.__main__ import rows
from solisync.web.app import UrlMap
from tests.harness.console import table as console_table
from tests.harness.error_codes import find_route
from tests.harness.error_codes import table as players_table
from tests.harness.payloads import progress_of

words = st.sampled_from(
    ["api", "me", "avatar", "avatars", "replays", "recent", "docs", "health", "ready", "sync", "pull", "auth", "login"]
)
segments = st.one_of(words, st.text("aZ09._~-!$&'()*+,;=:@", max_size=6), st.just("x.png"), st.just("a.b.webp"))
paths = st.lists(segments, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@pytest.fixture(scope="session")
def urls(shared_service):
    """The URL map of a service."""
    return shared_service.service.site.resource._urls


@given(st.data())
def test_url_map_finds_the_declared_routes(urls, data):
    """The map finds the route whose path has these segments, with its variables, or none, for any method and path."""
    method = data.draw(st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH"]))
    path = data.draw(paths)
    expected = find_route(players_table(), method, path)
    try:
        route, variables = urls.find(method.encode(), path.encode())
    except Refused:
        assert expected is None
    else:
        assert route.endpoint == expected.endpoint
        assert re.sub(r"\{(\w+)\}", lambda match: variables[match[1]], route.path) == path


@pytest.mark.parametrize("path", ["//api/me", "/api%2Fme", "/%61pi/me", "*", "/api//me", "/api/me/", ""])
def test_path_in_another_spelling_has_no_route(urls, path):
    with pytest.raises(NotFound):
        urls.find(b"GET", path.encode())


@pytest.mark.parametrize("method", ["get", "Get", "G" * 17, "UNKNOWN", "OPTIONS"])
def test_error_of_another_method_lists_those_of_the_path(urls, method):
    """A method in lower case is another method."""
    with pytest.raises(MethodNotAllowed) as caught:
        urls.find(method.encode(), b"/api/me")
    assert caught.value.methods == ["GET", "HEAD"]


def test_unknown_paths_are_not_remembered(urls):
    """Otherwise a client could fill the memory."""
    remembered = {*urls._remembered}
    for number in range(100):
        with pytest.raises(NotFound):
            urls.find(b"GET", b"/nope/%d" % number)
        with suppress(Refused):
            urls.find(b"GET", b"/api/replays/%d" % number)
    assert {*urls._remembered} == remembered


async def test_push_finds_its_route_and_reads_its_token_once(server):
    """A push needs both before its body arrives, and its handler needs them again."""
    player = await server.player("ann")
    with (
        patch.object(UrlMap, "find", autospec=True, side_effect=UrlMap.find) as find,
        patch.object(Tokens, "read_access", autospec=True, side_effect=Tokens.read_access) as read,
    ):
        answer = await server.ask("POST", "/api/sync/push", body=progress_of(), bearer=player.tokens.access_token)
    assert (answer.status, find.call_count, read.call_count) == (200, 1, 1)


def test_list_of_routes_names_each_declared_route():
    """`python -m solisync.web` prints each route that a handler declares, with its rate limit and its protection."""
    listed = {tuple(line.split()[:4]) for line in rows()}
    declared = [route for route in (*players_table(), *console_table()) if hasattr(route.handler, "declared")]
    assert len(declared) > 80
    for route in declared:
        if not route.name.endswith("_alias"):
            limit = route.limit.name if route.limit else "-"
            assert (route.method, route.path, limit, "token" if route.protected else "-") in listed


async def test_path_of_a_list_is_not_the_path_of_a_replay(server):
    """The recent list can only be read: `recent` is no id, although the paths of replays have one there."""
    for method, status in (("GET", 200), ("DELETE", 405), ("POST", 405)):
        answer = await server.ask(method, "/api/replays/recent")
        assert answer.status == status
        assert answer.headers.get("allow") == (None if status == 200 else "GET, HEAD")
    assert "DELETE" in (await server.ask("POST", "/api/replays/x")).headers["allow"]
