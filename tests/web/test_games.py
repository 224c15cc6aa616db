"""Finished games that clients send by their ids (docs/sync.md, docs/protocol.md "Progress")."""


from tests.harness.games import game


async def send(server, client, *games):
    """Send games, which must succeed, and return the answer's JSON."""
    answer = await server.ask("POST", "/api/games", body={"games": games}, bearer=client.tokens.access_token)
    assert answer.status == 200, answer
    return answer.json


async def test_new_game_is_counted(server):
    client = await server.player("ann")
    first = game(score=605, seconds=100)
    answer = await send(server, client, first)
    assert answer["games"] == [{"game_id": first["game_id"], "counted": True, "error": None}]
    stats, progress = answer["merged"]["stats"], answer["merged"]["progress"]
    assert (stats["games_played"], stats["games_won"], stats["lifetime_score"]) == (1, 1, 605)
    assert (stats["win_streak_current"], stats["classic_fastest_win_seconds"]) == (1, 100)
    assert progress["total_xp"] == 50 + 17 + 25 + 75  # the week's goal of a win under five minutes
    assert (await client.pull()).merged.stats.games_played == 1


async def test_repeated_game_is_counted_once(server):
    """Whatever its values: the id decides."""
    client = await server.player("ann")
    first = game(score=605)
    await send(server, client, first)
    answer = await send(server, client, first, {**first, "game_id": first["game_id"].upper(), "score": 9})
    assert [each["counted"] for each in answer["games"]] == [False, False]
    assert answer["merged"]["stats"]["lifetime_score"] == 605
