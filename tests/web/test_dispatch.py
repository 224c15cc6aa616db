"""The dispatcher in front of klein finds the same routes in less time."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from werkzeug.exceptions import HTTPException

from solisync.access.tokens import Tokens
from solisync.web.__main__ import rows
from solisync.web.app import Dispatcher
from tests.harness.console import table as console_table
from tests.harness.error_codes import dispatcher
from tests.harness.error_codes import table as players_table
from tests.harness.payloads import progress_of

words = st.sampled_from(
    ["api", "me", "avatar", "avatars", "replays", "recent", "docs", "health", "ready", "sync", "pull", "auth", "login"]
)
segments = st.one_of(words, st.text("aZ09._~-!$&'()*+,;=:@", max_size=6), st.just("x.png"), st.just("a.b.webp"))
paths = st.lists(segments, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(st.data())
def test_dispatcher_finds_the_routes_that_klein_finds(shared_service, data):
    """Dispatcher and klein return the same route with the same variables for any path, or none."""
    resource = shared_service.service.site.resource
    method = data.draw(st.sampled_from(["GET", "PUT", "POST", "DELETE"]))
    path = data.draw(paths.filter(lambda path: not path.startswith("//")))
    route, variables = dispatcher().find(method.encode(), path.encode())
    try:
        endpoint, expected = resource._app.url_map.bind("localhost").match(path, method)
    except HTTPException:
        assert route is None
    else:
        assert f"{route.method} {route.path}" == endpoint
        assert variables == expected


def test_dispatcher_has_every_route(shared_service):
    """Klein handles only requests without a route."""
    resource = shared_service.service.site.resource
    rules = list(resource._app.url_map.iter_rules())
    assert len(rules) > 20
    for rule in rules:
        path = rule.build(dict.fromkeys(rule.arguments, "x"))[1]
        for method in rule.methods - {"OPTIONS"}:
            assert dispatcher().find(method.encode(), path.encode())[0] is not None


async def test_push_finds_its_route_and_reads_its_token_once(server):
    """A push needs both before its body arrives, and its handler needs them again."""
    player = await server.player("ann")
    with (
        patch.object(Dispatcher, "find", autospec=True, side_effect=Dispatcher.find) as find,
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
