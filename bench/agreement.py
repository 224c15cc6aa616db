"""Compares the answers of two servers, because their speeds are comparable only if they do the same work."""

import http.client
import json
import re
from typing import Any

from .world import Player, identity, payload

# Tokens and timestamps, which differ in each answer.
_VARYING = re.compile(r'("(?:server_time|last_modified|access_token|refresh_token)"):"[^"]+"')


def disagreements(one: int, other: int) -> list[str]:
    """Send the same requests to the servers at two ports, and describe each answer that differs.

    Player 0 plays on the first server and player 1 on the second; both have used their refresh token afterwards.
    """
    pairs = zip(_answers(one, 0), _answers(other, 1), strict=True)
    return [f"{what}: {mine} is not {theirs}" for (what, mine), (_, theirs) in pairs if mine != theirs]


def _answers(port: int, number: int) -> list[tuple[str, Any]]:
    player = Player(number)
    mine = {"Authorization": f"Bearer {player.access.decode()}"}
    asked: list[tuple[str, str, str, dict[str, str], Any]] = [
        ("me", "GET", "/api/me", mine, None),
        ("me without a token", "GET", "/api/me", {}, None),
        ("me with a refresh token", "GET", "/api/me", {"Authorization": f"Bearer {player.refresh}"}, None),
        ("pull", "GET", "/api/sync/pull", mine, None),
        ("push", "POST", "/api/sync/push", mine, payload(3_000)),
        ("push again", "POST", "/api/sync/push", mine, payload(3_000) | {"new": [1.50]}),
        ("pull again", "GET", "/api/sync/pull", mine, None),
        ("push for another", "POST", "/api/sync/push", mine, payload(3_000, user_id=identity("user", 9))),
        ("push nonsense", "POST", "/api/sync/push", mine, {"user_id": 1}),
        ("recent", "GET", "/api/replays/recent", {}, None),
        ("recent with a limit", "GET", "/api/replays/recent?limit=3", {}, None),
        ("recent with nonsense", "GET", "/api/replays/recent?limit=x", {}, None),
        *(("refresh", "POST", "/api/auth/refresh", {}, {"refresh_token": player.refresh}) for _ in range(12)),
    ]
    return [(what, _ask(port, number, *words)) for what, *words in asked]


def _ask(port: int, number: int, method: str, path: str, headers: dict[str, str], body: Any) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(
        method, path, None if body is None else json.dumps(body), {"X-Forwarded-For": f"192.0.2.{number}", **headers}
    )
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    for each in range(2):
        text = text.replace(identity("user", each), "ID").replace(f'"player_{each}"', '"NAME"')
    return response.status, _VARYING.sub(r"\1:…", text)
