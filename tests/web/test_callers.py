"""Rules for all routes: whose token they take, and how many requests of one caller."""

from datetime import UTC, datetime
from itertools import cycle, islice

import pytest

from solisync.access.rate_limit import ANALYTICS, AUTH, EXPORT, JOIN, OPT_IN
from solisync.access.rate_limit import PASSWORD as PASSWORDS
from solisync.acts import players
from solisync.commands.smoke import PIXEL
from tests.harness.acting import act
from tests.harness.constants import PASSWORD
from tests.harness.error_codes import table
from tests.harness.games import game
from tests.harness.http_requests import new_address
from tests.harness.payloads import progress_of, replay
from tests.harness.service import refused

UNTIL = datetime(2199, 5, 1, 12, tzinfo=UTC)
TEXT = "this account is suspended until 2199-05-01 12:00:00 UTC: no more of this"
UNKNOWN = "0b8f6f0e-6c53-4d0a-9c3e-2f1d8a7b5c41"
NEW_PASSWORD = {"current_password": PASSWORD, "new_password": "another horse"}
BODIES = {
    "/api/me/guest-key": {"guest_key": "k" * 22},
    "/api/me/claim": {"username": "anna", "password": PASSWORD},
    "/api/me/avatar": PIXEL,
    "/api/me/password": NEW_PASSWORD,
    "/api/me/recovery-codes": {"current_password": PASSWORD},
    "/api/sync/push": progress_of(),
    "/api/games": {"games": [game()]},
    "/api/leaderboard/opt-in": {"display_name": "Ann"},
    "/api/replays": replay(),
    "/api/replays/{replay_id}/listed": {"listed": True},
    "/api/session/password": NEW_PASSWORD,
}
VALUES = {"extension": "png", "draw_mode": "DrawOne", "day": "2026-01-01", "seed": "1"}


def own(server, kind="application/json"):
    """The headers of a request by a page of the service."""
    return {"Origin": server.url, "Host": server.url.removeprefix("http://"), "Content-Type": kind}


@pytest.fixture
def asked(server):
    """Return a function that yields each route with the answer to a valid request."""

    async def asked(token):
        guest = server.client()
        await guest.guest()
        bodies = BODIES | {"/api/me/join": {"guest_refresh_token": guest.tokens.refresh_token}}
        for route in table():
            if route.protected:
                kind = "image/png" if route.path == "/api/me/avatar" else "application/json"
                body = bodies[route.path] if route.method in ("PUT", "POST") else None
                for name in (UNKNOWN, "x") if route.variables else ("",):
                    path = route.path.format(**dict.fromkeys(route.variables, name) | VALUES)
                    yield route, await server.ask(route.method, path, own(server, kind), body, bearer=token)

    return asked


async def test_every_route_needs_a_token(server, asked):
    count = 0
    async for route, answer in asked(None):
        found = (answer.status, answer.json, answer.headers["www-authenticate"])
        assert found == (401, {"error": "unauthorized"}, "Bearer"), route
        count += 1
    assert count > 30


async def test_every_route_about_a_deleted_player_finds_none(server, asked):
    """Whatever else is wrong. The account may be deleted again, and what others made can still be read."""
    ann = await server.player("ann")
    token = ann.tokens.access_token
    await ann.delete_account()
    readable = set()
    async for route, answer in asked(token):
        if "user_not_found" in route.codes:
            assert (answer.status, answer.json) == (404, {"error": "user not found"}), route
        else:
            readable.add(route.path)
            assert answer.status == 200 or answer.headers["error-code"] == "avatar_not_found", route
    assert len(readable) == 7


async def test_every_route_refuses_earlier_access_tokens_of_a_suspended_player(server, reactor, asked):
    """Exports and deletion too return 403 with the message of the sign-in. A refresh returns 401, and logout works."""
    ann, bob = await server.player("ann"), await server.player("bob")
    tokens = ann.tokens
    await act(reactor, server.dsn, players.suspend, (await ann.me()).id, until=UNTIL, message="no more of this")
    async for route, answer in asked(tokens.access_token):
        found = (answer.status, answer.headers.get("error-code"), answer.json)
        assert found == (403, "suspended", {"error": TEXT}), route
        assert answer.headers["suspended-until"] == "2199-05-01T12:00:00Z"
    assert await refused(ann.refresh()) == (401, "unauthorized")
    body = {"refresh_token": tokens.refresh_token}
    assert (await server.ask("POST", "/api/auth/logout", body=body)).status == 200
    assert (await bob.me()).username == "bob"
    assert server.sql("SELECT count(*) FROM users WHERE guest IS NULL") == [(2,)]


@pytest.mark.parametrize("limit", [AUTH, ANALYTICS, PASSWORDS, EXPORT, OPT_IN, JOIN], ids=lambda limit: limit.name)
async def test_requests_to_all_routes_of_a_limit_count_together(server, limit):
    """Requests count before their bodies are read. The limit of one client doesn't affect another."""
    routes = [route for route in table() if route.limit == limit]
    by_address, mine, another = not routes[-1].protected, new_address(), new_address()
    ann, bob = [(await server.player(name)).tokens.access_token for name in ("ann", "bob")]

    async def ask(route, bearer, address):
        body = None if route.method in ("GET", "DELETE") else {}
        return await server.ask(route.method, route.path, own(server), body, bearer=bearer, address=address)

    for route in islice(cycle(routes), limit.most):
        assert (await ask(route, ann, mine if by_address else new_address())).status != 429, route
    for route in routes:
        answer = await ask(route, ann, mine if by_address else new_address())
        assert (answer.status, answer.json) == (429, {"error": "too many requests"}), route
        assert 0 < int(answer.headers["retry-after"]) <= limit.seconds
    for route in islice(cycle(routes), limit.most):
        assert (await ask(route, ann if by_address else bob, another)).status != 429, route


def test_each_limit_of_requests_has_routes():
    """Games, streams and guests count in their handlers, by other limits."""
    assert {route.limit for route in table()} == {None, AUTH, ANALYTICS, PASSWORDS, EXPORT, OPT_IN, JOIN}
