"""Pages for players (docs/pages.md); tests/fire has those that need a browser."""

import pytest

STATIC = ["/", "/replays", "/leaderboard", "/daily", "/account"]


@pytest.mark.parametrize("path", STATIC)
async def test_there_is_a_page(server, path):
    answer = await server.ask("GET", path)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")


async def test_a_day_has_a_page(server):
    answer = await server.ask("GET", "/daily/2026-04-26")
    assert answer.status == 200
    assert b"1364344767969826" in answer.content
    assert (await server.ask("GET", "/daily/2999-04-26")).status == 404
