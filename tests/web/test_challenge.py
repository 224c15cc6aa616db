"""The daily challenge over HTTP (docs/protocol.md "The daily challenge")."""

from datetime import UTC, datetime, timedelta

from twisted.internet.task import Clock

from tests.harness.service import start


async def test_todays_challenge_needs_no_token(server):
    """It is public, because existing clients ask without a token."""
    answer = await server.ask("GET", "/api/daily-challenge")
    assert answer.status == 200
    assert set(answer.json) == {"date", "seed", "description", "target_score", "max_time_secs"}


async def test_the_day_turns_at_utc_midnight(reactor, shared_dsn):
    """The last microsecond of a day has its challenge and a cache of a second, the next one the next."""
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
