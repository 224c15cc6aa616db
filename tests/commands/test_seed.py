"""`solisync seed`: made-up players for sizing and for tests of clients."""

import pytest

from solisync.errors import FatalError
from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD
from tests.harness.entry_points import SOLISYNC
from tests.harness.postgres import run_sql
from tests.harness.processes import run
from tests.harness.service import refused, start


async def test_seeded_players_work_like_real_ones(reactor, migrated_database):
    """Seeded players log in, pull and push. Their replays can be read, and the leaderboard has their entries."""
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


async def test_seed_refuses_a_database_with_players_of_its_own(administrate, server):
    """More than one account of another origin needs --force; numbering continues where it ended."""
    await server.player("ann")
    assert "seeded_1 to seeded_2" in await administrate("seed", "--players", 2)
    await server.player("bob")
    with pytest.raises(FatalError, match="has 2 players that seed didn't make: "):
        await administrate("seed", "--players", 2)
    assert server.sql("SELECT count(*) FROM users") == [(4,)]
    assert "seeded_3 to seeded_5" in await administrate("seed", "--players", 3, "--force")
    assert await refused(server.client().login("seeded_5", PASSWORD)) == (401, "invalid credentials")


async def test_seed_makes_200_players_by_default(administrate, server):
    """The command of the README needs no option after the first registration there."""
    await server.player("ann")
    assert "made 200 players, seeded_1 to seeded_200, and 0 replays" in await administrate("seed")


async def test_two_seeds_at_the_same_time_make_all_their_players(administrate, server, reactor):
    """No number is taken twice, and each run adds replays to its own players."""
    runs = await gather(2, lambda _: administrate("seed", "--players", 40, "--replays", 40), range(2))
    assert [run.startswith("made 40 players") for run in runs] == [True, True]
    assert server.sql("SELECT count(*) FROM users WHERE username LIKE 'seeded_%%'") == [(80,)]
    assert server.sql("SELECT count(*), count(DISTINCT user_id) FROM replays") == [(80, 80)]
