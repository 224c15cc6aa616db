"""Finished games that clients send by their ids (docs/sync.md, docs/protocol.md "Progress")."""

from datetime import UTC, datetime

import pytest

from solisync.rules.counting import NO_GAMES
from solisync.rules.games import KEPT
from solisync.storage.players.games import MOST_NEW
from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD
from tests.harness.devices import counts_in, payload_of, play
from tests.harness.games import game
from tests.harness.payloads import progress_of
from tests.web.calls import board, opt_in, push

FILL = """
    INSERT INTO games (user_id, game_id, ended_at, counted_at, mode, draw_mode, won, score, seconds, xp)
    SELECT id, gen_random_uuid(), now(), now() - %s::interval, 'Zen', 'DrawOne', false, 0, 0, 0
    FROM users, generate_series(1, %s)
"""


async def ask(server, client, *games):
    return await server.ask("POST", "/api/games", body={"games": games}, bearer=client.tokens.access_token)


async def send(server, client, *games):
    """Send games, which must succeed; return the answer's JSON."""
    answer = await ask(server, client, *games)
    assert answer.status == 200, answer
    return answer.json


def counted(answer):
    return [each["counted"] for each in answer["games"]]


def played(answer):
    return answer["merged"]["stats"]["games_played"]


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
    """Whatever its values and its spelling: the id decides."""
    client = await server.player("ann")
    first = game(score=605)
    await send(server, client, first)
    answer = await send(server, client, first, {**first, "game_id": first["game_id"].upper(), "score": 9})
    assert counted(answer) == [False, False]
    assert answer["merged"]["stats"]["lifetime_score"] == 605


async def test_first_game_of_an_id_counts_in_one_request(server):
    """The other game of the id has other points."""
    client, first = await server.player("ann"), game(score=605)
    answer = await send(server, client, first, {**first, "score": 9})
    assert (counted(answer), answer["merged"]["stats"]["lifetime_score"]) == ([True, False], 605)


async def test_id_counts_for_each_player(server):
    ann, bob, first = await server.player("ann"), await server.player("bob"), game()
    assert counted(await send(server, ann, first)) == counted(await send(server, bob, first)) == [True]


async def test_wrong_game_costs_the_others_nothing(server):
    """A hundred games of which one is wrong."""
    client = await server.player("ann")
    games = [game() for _ in range(100)]
    games[41]["score"] = "many"
    answer = await send(server, client, *games)
    assert counted(answer) == [place != 41 for place in range(100)]
    assert answer["games"][41] == {"game_id": games[41]["game_id"], "counted": False, "error": "bad_field"}
    assert played(answer) == 99


@pytest.mark.parametrize(("count", "code"), [(0, "bad_field"), (101, "batch_too_large")])
async def test_request_has_one_to_a_hundred_games(server, count, code):
    client = await server.player("ann")
    answer = await ask(server, client, *(game() for _ in range(count)))
    assert (answer.status, answer.headers["error-code"]) == (400, code)
    assert server.sql("SELECT count(*) FROM games") == [(0,)]


async def test_guest_sends_games(server):
    client = server.client()
    await client.guest()
    assert counted(await send(server, client, game())) == [True]


async def test_answer_before_any_game_has_the_defaults(server):
    """The only game of the request is wrong."""
    client = await server.player("ann")
    answer = await ask(server, client, game(won=None))
    assert (answer.status, played(answer.json)) == (200, 0)
    assert "etag" not in answer.headers
    assert server.sql("SELECT count(*) FROM sync_states") == [(0,)]


async def test_answers_have_the_revision_of_a_pull(server):
    """Pushes, new games and known games are answered alike."""
    client, first = await server.player("ann"), game()
    for send_one in (
        lambda: ask(server, client, first),
        lambda: ask(server, client, first),
        lambda: push(server, client, progress_of()),
    ):
        answer = await send_one()
        pulled = await server.ask("GET", "/api/sync/pull", bearer=client.tokens.access_token)
        assert answer.headers["etag"] == pulled.headers["etag"]


async def test_game_counts_once_when_devices_send_it_at_once(server):
    """From several devices, before any progress is stored."""
    client, games = await server.player("ann"), [game() for _ in range(3)]
    answers = await gather(6, lambda _: send(server, client, *games), range(6))
    assert sorted(sum(counted(answer)) for answer in answers) == [0, 0, 0, 0, 0, 3]
    assert {played(answer) for answer in answers} == {3}


@pytest.mark.parametrize(
    "ended_at", ["1992-10-10T22:24:35-17:44", "2026-11-20T18:03:00+23:59", "0001-01-02T00:00:00+16:00"]
)
async def test_game_with_a_large_offset_is_counted(server, ended_at):
    """PostgreSQL takes offsets of less than 16 hours alone."""
    client = await server.player("ann")
    assert counted(await send(server, client, game(ended_at=ended_at))) == [True]


async def test_games_improve_the_leaderboard(server):
    client = await server.player("ann")
    await opt_in(server, client, "Ann")
    await send(server, client, game(score=700, seconds=77))
    assert await board(server, client) == [("Ann", 700, 77)]


async def test_other_devices_hear_of_games(server):
    """A request of known games publishes nothing."""
    client, first = await server.player("ann"), game()
    await send(server, client, first)
    other = server.client()
    await other.login("ann", PASSWORD)
    events = other.events()
    hello = await anext(events)
    await send(server, client, first)
    second = await ask(server, client, game())
    heard = await anext(events)
    await events.aclose()
    assert f'W/"{hello.revision}"' != second.headers["etag"] == f'W/"{heard.revision}"'


async def test_sixty_first_request_in_a_minute_is_refused(server):
    client, first = await server.player("ann"), game()
    for _ in range(60):
        await send(server, client, first)
    answer = await ask(server, client, game())
    assert (answer.status, answer.headers["error-code"]) == (429, "rate_limited")
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert server.sql("SELECT count(*) FROM games") == [(1,)]


async def test_new_games_of_a_day_have_a_bound(server):
    """A request that doesn't fit whole counts nothing. One of known games needs no room."""
    client, first = await server.player("ann"), game()
    await send(server, client, first)
    server.sql(FILL, ("23 hours", MOST_NEW - 3))
    assert counted(await send(server, client, first, game(), game())) == [False, True, True]
    answer = await ask(server, client, first, game())
    assert (answer.status, answer.headers["error-code"]) == (429, "rate_limited")
    assert 3500 < int(answer.headers["retry-after"]) <= 3600
    assert counted(await send(server, client, first)) == [False]
    assert server.sql("SELECT count(*) FROM games") == [(MOST_NEW,)]
    server.sql("UPDATE games SET counted_at = now() - interval '25 hours' WHERE mode = 'Zen'")
    assert counted(await send(server, client, game())) == [True]


async def test_requests_without_room_for_their_games_count(server):
    """Each reads all games of the day, so the limit of a minute holds for them too."""
    client = await server.player("ann")
    server.sql(FILL, ("23 hours", MOST_NEW))
    answers = [await ask(server, client, game()) for _ in range(61)]
    assert {answer.status for answer in answers} == {429}
    assert int(answers[59].headers["retry-after"]) > 3_500
    assert int(answers[60].headers["retry-after"]) <= 60


async def test_average_time_is_exact_over_requests(server):
    client = await server.player("ann")
    for seconds in (100, 101, 101, 101):
        answer = await send(server, client, game(seconds=seconds))
    assert answer["merged"]["stats"]["avg_time_seconds"] == 100
    assert server.sql("SELECT win_seconds FROM game_memory") == [(403,)]


async def test_game_counted_in_the_future_takes_no_room(server):
    """The database's clock was ahead."""
    client = await server.player("ann")
    await send(server, client, game())
    server.sql(FILL, ("-2 days", MOST_NEW))
    assert counted(await send(server, client, game())) == [True]


async def test_earliest_games_are_forgotten_beyond_the_bound(server):
    """A game that ended no later than a forgotten one never counts again."""
    client = await server.player("ann")
    times = [f"2026-11-{day:02}T10:00:00Z" for day in range(1, 6)]
    first, second, third, fourth, fifth = (game(ended_at=each) for each in times)
    await send(server, client, first, third, fourth)
    server.sql("UPDATE game_memory SET games = %s", (KEPT - 1,))
    assert counted(await send(server, client, fifth)) == [True]
    assert server.sql("SELECT games, forgotten_until FROM game_memory") == [(KEPT, None)]
    await send(server, client, game(ended_at="2026-11-06T10:00:00Z"), game(ended_at="2026-11-07T10:00:00Z"))
    assert server.sql("SELECT games, forgotten_until FROM game_memory") == [
        (KEPT, datetime(2026, 11, 3, 10, tzinfo=UTC))
    ]
    assert counted(await send(server, client, first, second, third, fourth)) == [False] * 4


async def test_end_of_forgotten_games_never_falls(server):
    """Games that a join has brought may have ended earlier than forgotten ones."""
    client, forgotten = await server.player("ann"), datetime(2026, 11, 5, 10, tzinfo=UTC)
    await send(server, client, game(ended_at="2026-11-01T10:00:00Z"))
    server.sql("UPDATE game_memory SET games = %s, forgotten_until = %s", (KEPT, forgotten))
    assert counted(await send(server, client, game(ended_at="2026-11-06T10:00:00Z"))) == [True]
    assert server.sql("SELECT games, forgotten_until FROM game_memory") == [(KEPT, forgotten)]


async def test_join_moves_the_games_of_the_guest(server):
    """A game that both have sent adds nothing, and every game is known afterwards."""
    client, guest = await server.player("ann"), server.client()
    own, shared, theirs = game(score=100), game(score=200), game(score=300, draw_mode="DrawThree")
    await send(server, client, own, shared)
    await guest.guest()
    await send(server, guest, shared, theirs)
    answer = await client.join(guest.tokens.refresh_token)
    stats = answer.merged.stats
    assert (stats.games_played, stats.lifetime_score, stats.draw_one_wins, stats.draw_three_wins) == (3, 600, 2, 1)
    again = await send(server, client, own, shared, theirs)
    assert (counted(again), played(again)) == ([False] * 3, 3)
    assert server.sql("SELECT games FROM game_memory") == [(3,)]


async def test_join_at_an_older_node_moves_the_games(server):
    """Statements of version 1.1, which know nothing of games."""
    client, guest, theirs = await server.player("ann"), server.client(), game()
    await guest.guest()
    await send(server, guest, theirs)
    ids = ((await client.me()).id, (await guest.me()).id)
    server.sql("INSERT INTO joined_guests (user_id, guest_id) VALUES (%s, %s)", ids)
    server.sql("DELETE FROM users WHERE id = %s", ids[1:])
    assert counted(await send(server, client, theirs)) == [False]


# What it costs to count games by totals and by ids beside each other (docs/sync.md "Both ways").


async def test_totals_and_games_of_two_devices_add_up(server):
    """A device that pushes totals, and one that sends games."""
    phone, tablet = await server.player("ann"), server.client()
    await tablet.login("ann", PASSWORD)
    await send(server, tablet, game(), game())
    pulled = counts_in((await server.ask("GET", "/api/sync/pull", bearer=phone.tokens.access_token)).json)
    await send(server, tablet, game())
    answer = await push(server, phone, payload_of(pulled._replace(games_played=pulled.games_played + 5)))
    assert played(answer.json) == 3 + 5
    assert played(await send(server, tablet, game())) == 9


async def test_answer_to_known_games_is_a_base_for_totals(server):
    """A second device sends a known game, and adds a game to the totals in the answer."""
    client, second, known = await server.player("ann"), server.client(), game()
    await send(server, client, known)
    await second.login("ann", PASSWORD)
    begun = counts_in(await send(server, second, known))
    await send(server, client, game())
    answer = await push(server, second, payload_of(begun._replace(games_played=begun.games_played + 1)))
    assert played(answer.json) == 3


async def test_game_sent_in_totals_and_by_id_counts_twice(server):
    """Clients send each game one way."""
    client = await server.player("ann")
    await client.pull()
    answer = await push(server, client, payload_of(play(NO_GAMES, won=True, score=601, seconds=200)))
    assert played(answer.json) == 1
    assert played(await send(server, client, game())) == 2


async def test_push_beside_games_with_the_defaults_changes_no_count(server):
    """A client that sends games pushes its achievements and unknown fields so, whatever it has pulled before."""
    client = await server.player("ann")
    await send(server, client, game(), game())
    first = (await client.pull()).merged
    defaults = progress_of(zz_new=1, progress__unlocked_card_backs=[0, 7])
    for _ in range(2):
        merged = (await push(server, client, defaults)).json["merged"]
        assert merged["stats"]["games_played"] == first.stats.games_played
        assert merged["stats"]["win_streak_current"] == first.stats.win_streak_current
        assert merged["progress"]["unlocked_card_backs"] == [0, 7]
        await send(server, client, game())
        first = (await client.pull()).merged
    assert first.stats.games_played == 4


async def test_games_survive_the_lost_memory_of_totals(server):
    """A crash of PostgreSQL empties it."""
    client = await server.player("ann")
    await send(server, client, game(), game())
    server.sql("DELETE FROM known_states")
    await push(server, client, progress_of())
    assert played(await send(server, client, game())) == 3
