"""Compares the answers of two servers, because their speeds are comparable only if they do the same work."""

import http.client
import json
import re
from typing import Any

from solisync.rules.stock import player_id

from .workloads import finished_game
from .world import TOWN, Player, populate

# Tokens and timestamps, which differ in each answer.
_VARYING = re.compile(r'("(?:server_time|last_modified|access_token|refresh_token)"):"[^"]+"')


def disagreements(dsn: str, one: int, other: int) -> list[str]:
    """Send the same requests to the servers at two ports, each with a new TOWN, and describe answers that differ."""
    answers = []
    for port in (one, other):
        populate(dsn, TOWN)
        answers.append(_answers(port))
    return [
        f"{what}: {mine} is not {theirs}" for (what, mine), (_, theirs) in zip(*answers, strict=True) if mine != theirs
    ]


def _answers(port: int) -> list[tuple[str, Any]]:
    player = Player(1)
    mine = {"Authorization": f"Bearer {player.access.decode()}"}
    progress = json.loads(TOWN.stock.player(1).progress.encode())
    won = finished_game(1_000)
    another = progress | {"user_id": player_id(9)}
    asked: list[tuple[str, str, str, dict[str, str], Any]] = [
        ("me", "GET", "/api/me", mine, None),
        ("me without a token", "GET", "/api/me", {}, None),
        ("me with a refresh token", "GET", "/api/me", {"Authorization": f"Bearer {player.refresh}"}, None),
        ("pull", "GET", "/api/sync/pull", mine, None),
        ("push", "POST", "/api/sync/push", mine, progress),
        ("push again", "POST", "/api/sync/push", mine, progress | {"new": [1.50]}),
        ("pull again", "GET", "/api/sync/pull", mine, None),
        ("games", "POST", "/api/games", mine, {"games": [won, won | {"score": -1}]}),
        ("the games again", "POST", "/api/games", mine, {"games": [won]}),
        ("no games", "POST", "/api/games", mine, {"games": []}),
        ("push for another", "POST", "/api/sync/push", mine, another),
        ("push nonsense", "POST", "/api/sync/push", mine, {"user_id": 1}),
        ("recent", "GET", "/api/replays/recent", {}, None),
        ("recent with a limit", "GET", "/api/replays/recent?limit=3", {}, None),
        ("recent with nonsense", "GET", "/api/replays/recent?limit=x", {}, None),
        *(("refresh", "POST", "/api/auth/refresh", {}, {"refresh_token": player.refresh}) for _ in range(12)),
    ]
    return [(what, _ask(port, *words)) for what, *words in asked]


def _ask(port: int, method: str, path: str, headers: dict[str, str], body: Any) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(
        method, path, None if body is None else json.dumps(body), {"X-Forwarded-For": "192.0.2.1", **headers}
    )
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, _VARYING.sub(r"\1:…", text)
