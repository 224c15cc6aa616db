"""Queries of requests: their encoding, and how many parameters they have (docs/protocol.md "Common to all routes")."""

from unittest.mock import patch

import pytest

from solisync.web.wire import request
from solisync.web.wire.request import PARAMETERS_MAX
from tests.harness.error_codes import table
from tests.harness.payloads import progress_of

JSON_ROUTES = ("/health", "/api/replays/recent", "/api/openapi.json")


async def code_of(server, path, method="GET", **given):
    answer = await server.ask(method, path, **given)
    return answer.status, answer.headers.get("error-code")


@pytest.mark.parametrize("path", JSON_ROUTES)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_query_with_many_parameters_is_refused(server, path, method):
    """The service accepts twenty parameters, and counts empty ones and those that the route doesn't know."""
    assert await code_of(server, path + "?" + "&".join(["x=1"] * PARAMETERS_MAX), method) == (200, None)
    for query in ("&".join(["x=1"] * (PARAMETERS_MAX + 1)), "&" * PARAMETERS_MAX, "%41&" * 3_900):
        assert await code_of(server, f"{path}?{query}", method) == (400, "bad_query")


@pytest.mark.parametrize("route", [route for route in table() if route.parameters], ids=lambda route: route.path)
async def test_route_refuses_a_wrong_parameter(server, route):
    """Each parameter is doubled, or wrong; tests/rules/test_queries.py has the spellings. No player is looked up."""
    token = (await server.player("ann")).tokens.access_token
    values = {"day": "2026-01-01", "seed": "1", "draw_mode": "DrawOne"}
    path = route.path.format(**dict.fromkeys(route.variables, "nobody") | values)
    for name in route.parameters:
        for query in (f"{name}=1&{name}=2", f"{name}=%00"):
            assert await code_of(server, f"{path}?{query}", bearer=token) == (400, "bad_query"), query


@pytest.mark.parametrize("query", ["x=%ff", "%C3=1", "limit=1&x=%ED%A0%80", "J%FCrgen"])
async def test_query_must_be_utf_8_if_it_is_read(server, query):
    """A route that has parameters refuses other bytes, also in parameters that it doesn't know."""
    assert await code_of(server, f"/api/replays/recent?{query}") == (400, "bad_query")
    assert await code_of(server, f"/health?{query}") == (200, None)


async def test_query_is_refused_after_the_token(server):
    """The service returns 401 for a request without a valid token. A push with a wrong query stores nothing."""
    player = await server.player("ann")
    path = f"/api/sync/push?{'&' * PARAMETERS_MAX}"
    assert await code_of(server, path, "POST", body=progress_of()) == (401, "unauthorized")
    pushed = await code_of(server, path, "POST", body=progress_of(), bearer=player.tokens.access_token)
    assert pushed == (400, "bad_query")
    assert server.sql("SELECT FROM sync_states") == []


@pytest.mark.parametrize("path", ["/", "/replays", "/web/page.js", "/api/docs"])
async def test_page_ignores_its_query(server, path):
    """A page is the same whatever its query is."""
    assert await code_of(server, f"{path}?x=%ff&{'%41&' * 100}") == (200, None)


async def test_query_is_parsed_once_for_all_parameters(server):
    with patch.object(request, "parse_qsl", wraps=request.parse_qsl) as parse:
        assert await code_of(server, "/api/replays/recent?limit=1&verdict=verified") == (200, None)
    assert parse.call_count == 1
