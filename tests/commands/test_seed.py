"""`solisync seed`: made-up players for sizing and for tests of clients."""

import pytest

from solisync.errors import FatalError
from tests.harness.constants import PASSWORD
from tests.harness.entry_points import SOLISYNC
from tests.harness.postgres import run_sql
from tests.harness.processes import run
from tests.harness.service import refused, start


async def test_made_up_players_are_players(reactor, migrated_database):
    """They log in with the password, pull and push; they are on the leaderboard and have replays that can be read."""
    words = ["seed", "--players=120", "--replays=60", "--password-stdin", "--json"]
    done = run(*SOLISYNC, *words, stdin=f"{PASSWORD}\n".encode(), DATABASE_URL=migrated_database)
    assert (done.status, done.err) == (0, [])
    assert done.out == ['{"players":120,"replays":60,"first":"seeded_1","last":"seeded_120"}']
    assert run_sql(migrated_database, "SELECT count(*), count(DISTINCT user_id) FROM replays") == [(60, 60)]
    running = await start(reactor, migrated_database)
    try:
        client = running.client()
        for name in ("seeded_1", "seeded_120"):
            await client.login(name, PASSWORD)
            pulled = (await client.pull()).merged
            pushed = await client.push(pulled)
            assert (pushed.merged.stats.games_won, pushed.conflicts) == (pulled.stats.games_won, [])
        assert len(await client.leaderboard()) > 120 / 3
        recent = (await running.ask("GET", "/api/replays/recent?limit=50")).json
        assert len(recent) == 50
        body = await running.ask("GET", f"/api/replays/{recent[0]['id']}")
        assert body.json["schema_version"] == 2
    finally:
        await running.service.stopService()


async def test_real_players_are_not_buried(administrate, server):
    """Where somebody has registered it refuses, and changes nothing, unless told; it goes on where it ended."""
    await server.player("ann")
    with pytest.raises(FatalError, match="has 1 player of its own: "):
        await administrate("seed", "--players", 2)
    assert server.sql("SELECT count(*) FROM users") == [(1,)]
    await administrate("seed", "--players", 2, "--force")
    server.sql("DELETE FROM users WHERE username = 'ann'")
    assert "seeded_3 to seeded_5" in await administrate("seed", "--players", 3)
    assert await refused(server.client().login("seeded_5", PASSWORD)) == (401, "invalid credentials")
