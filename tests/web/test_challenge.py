"""Deals and the daily challenge over HTTP (docs/protocol.md "Deals")."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from twisted.internet.task import Clock

from tests.harness.constants import ROOT
from tests.harness.service import start


async def test_todays_challenge_needs_no_token(server):
    """Existing clients ask without a token."""
    answer = await server.ask("GET", "/api/daily-challenge")
    assert answer.status == 200
    assert set(answer.json) == {"date", "seed", "description", "target_score", "max_time_secs"}


async def test_day_changes_at_utc_midnight(reactor, shared_dsn):
    """The last microsecond of a day still has its challenge, with a cache time of a second."""
    clock = Clock()
    first = datetime(2026, 11, 20, tzinfo=UTC)
    running = await start(reactor, shared_dsn, now=lambda: first + timedelta(seconds=clock.seconds()))
    try:
        answer = await running.ask("GET", "/api/daily-challenge")
        assert answer.json == {
            "date": "2026-11-20",
            "seed": 1364344768803968,
            "description": "Win within 3 minutes",
            "target_score": None,
            "max_time_secs": 180,
        }
        assert answer.headers["cache-control"] == "public, max-age=86400"
        clock.advance(86_399.5)
        answer = await running.ask("GET", "/api/daily-challenge")
        assert (answer.json["date"], answer.headers["cache-control"]) == ("2026-11-20", "public, max-age=1")
        clock.advance(0.5)
        answer = await running.ask("GET", "/api/daily-challenge")
        assert (answer.json["date"], answer.headers["cache-control"]) == ("2026-11-21", "public, max-age=86400")
    finally:
        await running.service.stopService()


@pytest.mark.parametrize("draw_mode", ["DrawOne", "DrawThree"])
async def test_deals_are_those_of_the_published_list(server, draw_mode):
    """Deals need no token and may be cached. Both draw modes have the same cards."""
    for deal in json.loads((ROOT / "docs/replays/deals.json").read_bytes()):
        answer = await server.ask("GET", f"/api/deals/{deal['seed']}/{draw_mode}")
        cards = iter(deal["deck"])
        tableau = [[next(cards) for _ in range(height)] for height in range(1, 8)]
        expected = {"seed": deal["seed"], "draw_mode": draw_mode, "tableau": tableau, "stock": [*cards]}
        assert (answer.status, answer.json) == (200, expected)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_client_that_has_the_deal_gets_a_304(server):
    """HEAD returns the headers of GET."""
    path = "/api/deals/18446744073709551615/DrawThree"
    answer, head = await server.ask("GET", path), await server.ask("HEAD", path)
    assert (head.status, head.content, head.headers["etag"]) == (200, b"", answer.headers["etag"])
    again = await server.ask("GET", path, {"If-None-Match": answer.headers["etag"]})
    assert (again.status, again.content) == (304, b"")
    other = await server.ask("GET", path.replace("Three", "One"), {"If-None-Match": answer.headers["etag"]})
    assert other.status == 200


@pytest.mark.parametrize(
    "name", ["18446744073709551616/DrawOne", "01/DrawOne", "-1/DrawOne", "1.0/DrawOne", "1/DrawTwo"]
)
async def test_deal_with_a_wrong_seed_or_draw_mode_is_not_found(server, name):
    answer = await server.ask("GET", f"/api/deals/{name}")
    assert (answer.status, answer.headers["error-code"]) == (404, "not_found")
