"""Requests that several files of this directory send; `client` is the client of a player."""

from tests.harness.payloads import encode


async def push(server, client, payload):
    """Push progress and return the reply."""
    body = payload if isinstance(payload, bytes) else encode(payload)
    return await server.ask("POST", "/api/sync/push", body=body, bearer=client.tokens.access_token)


async def opt_in(server, client, name):
    """Show the player on the leaderboard and return the reply."""
    return await server.ask(
        "POST", "/api/leaderboard/opt-in", body={"display_name": name}, bearer=client.tokens.access_token
    )


async def board(server, client):
    """Return the leaderboard's entries as (name, score, seconds)."""
    answer = await server.ask("GET", "/api/leaderboard", bearer=client.tokens.access_token)
    assert answer.status == 200
    return [(entry["display_name"], entry["best_score"], entry["best_time_secs"]) for entry in answer.json]
