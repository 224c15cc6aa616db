"""`solisync seed`: made-up players to try the service, for sizing and for tests of clients."""

import json
from datetime import date

import pytest

from solisync.commands import seed
from solisync.errors import FatalError
from solisync.klondike import Status, check_literally
from solisync.rules.challenge import daily_challenge
from solisync.storage.operators import daily_numbers
from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD
from tests.harness.entry_points import SOLISYNC
from tests.harness.housekeeping import make_housekeeping
from tests.harness.postgres import run_sql
from tests.harness.processes import run
from tests.harness.service import refused, start

NO_WIN = "found no win of the deal of the day, so its board gets none"


def literally(body):
    """Return the verdict on a replay without a search for undos."""
    return check_literally(body.encode()).status


def game_of(body):
    """Return the deal of a replay."""
    return tuple(json.loads(body)[name] for name in ("seed", "draw_mode"))


@pytest.fixture
def no_win_today(monkeypatch):
    """Let the search find no win of the deal of the day."""
    monkeypatch.setattr(seed, "win_of", lambda deal, draw_mode: None)


@pytest.fixture
def numbers(open_database, reactor):
    """Return a function that reads a number of the last 30 days, after a round of housekeeping."""
    database = open_database()

    async def numbers(name):
        await make_housekeeping(database, reactor).prune()
        return [getattr(day, name) for day in await database.run(daily_numbers.of_days, 30)]

    return numbers


async def test_seeded_players_work_like_real_ones(reactor, migrated_database):
    """Seeded players log in, pull and push. Their replays can be read, and the leaderboard has their entries."""
    words = ["seed", "--players=120", "--replays=60", "--password-stdin", "--json"]
    done = run(*SOLISYNC, *words, stdin=f"{PASSWORD}\n".encode(), DATABASE_URL=migrated_database)
    assert done.status == 0
    assert done.err in ([], [NO_WIN])  # before 2027, not every deal of the day has a win
    (facts,) = map(json.loads, done.out)
    assert facts == {
        "players": 120,
        "replays": facts["replays"],
        "winners": 108,
        "first": "seeded_1",
        "last": "seeded_120",
    }
    assert run_sql(migrated_database, "SELECT count(*), count(DISTINCT user_id) >= 60 FROM replays") == [
        (facts["replays"], True)
    ]
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


async def test_seed_without_options_fills_lists_boards_and_numbers(administrate, server, no_win_today, numbers, full):
    """The command of the README needs no option after the first registration. With --fire, a second run follows."""
    await server.player("ann")
    runs = 2 if full else 1
    for times in range(1, runs + 1):
        done = (await administrate("seed", "--json")).json
        assert (done["players"], done["replays"], done["winners"]) == (200, 200, 180)
        assert server.sql("SELECT count(*) FROM users WHERE username LIKE 'seeded_%%'") == [(200 * times,)]
        assert server.sql("SELECT count(*) FROM replays") == [(200 * times,)]
    wins = [body for (body,) in server.sql("SELECT body FROM replays") if literally(body) is Status.VERIFIED]
    assert len(wins) == len(set(map(game_of, wins))) == 180 * runs
    ((listed, named),) = server.sql(
        "SELECT count(*) FILTER (WHERE event = 'register'), count(*) FILTER (WHERE event = 'opted in')"
        " FROM account_history"
    )
    assert listed > 60
    assert 0 < named < listed
    for name in ("registrations", "replays"):
        assert sum(count > 0 for count in await numbers(name)) > 20


async def test_verified_share_of_seeded_players_has_proved_scores(administrate, server, no_win_today):
    """All replays of these players are won games, and their entries have the best score of these."""
    await administrate("seed", "--players", 10, "--replays", 25, "--verified", 0.5)
    found = {}
    for name, score, body in server.sql(
        "SELECT username, best_score, body FROM replays JOIN users ON users.id = user_id LEFT JOIN leaderboard"
        " USING (user_id)"
    ):
        found.setdefault((name, score), []).append(body)
    verdicts = {name: {literally(body) for body in bodies} for (name, _), bodies in found.items()}
    assert list(verdicts.values()).count({Status.VERIFIED}) == 5
    for (name, score), bodies in found.items():
        if score is not None and verdicts[name] == {Status.VERIFIED}:
            assert score >= max(json.loads(body)["final_score"] for body in bodies)


@pytest.mark.parametrize("day", [date(2027, 1, 1), date(2028, 2, 29)])
async def test_seed_wins_the_deal_of_the_day(administrate, server, monkeypatch, day):
    """Each deal from 2027 on has a win, which a player with an entry on the leaderboard uploads."""
    challenge = daily_challenge(day)
    monkeypatch.setattr(seed, "daily_challenge", lambda today: challenge)
    await administrate("seed", "--players", 20)
    ((body, recent, name),) = server.sql(
        "SELECT body, received_at > now() - interval '1 minute', display_name FROM replays LEFT JOIN leaderboard"
        " USING (user_id) WHERE seed = %s",
        (str(challenge.seed),),
    )
    assert literally(body) is Status.VERIFIED
    assert recent
    assert name is not None


async def test_seed_reports_its_progress_and_a_deal_without_a_win(administrate, server, no_win_today):
    done = await administrate("seed", "--players", 2, "--progress")
    assert NO_WIN in done.progress
    assert "2 of 2 players, 2 of 2 replays" in done.progress


async def test_two_seeds_at_the_same_time_make_all_their_players(administrate, server, no_win_today):
    """No number is taken twice, and each run adds replays to its own players."""
    runs = await gather(2, lambda _: administrate("seed", "--players", 40, "--replays", 40), range(2))
    assert [run.startswith("made 40 players") for run in runs] == [True, True]
    assert server.sql("SELECT count(*) FROM users WHERE username LIKE 'seeded_%%'") == [(80,)]
    assert server.sql("SELECT count(*), count(DISTINCT user_id) FROM replays") == [(80, 80)]
