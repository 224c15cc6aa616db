"""Made-up players and replays (docs/administration.md "`solisync seed`")."""

import re
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from solisync.klondike import Status, check_literally
from solisync.rules.accounts import check_username
from solisync.rules.documents import read_pushed, read_stored
from solisync.rules.leaderboard import check_display_name
from solisync.rules.merge import merge
from solisync.rules.replays import read_replay
from solisync.rules.stock import DAYS, DEALS, OPTED_IN, PREFIX, Stock, player, replay, won_game

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
numbers = st.integers(1, 1_000_000)
times = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))


@given(numbers, times)
def test_made_up_progress_is_valid(number, now):
    """The merge accepts it and changes only the time of the merge."""
    made = player(number, now)
    document = made.progress.encode()
    pushed = read_pushed(document).document
    assert pushed == read_stored(document)
    merged, conflicts = merge(pushed, read_stored(document), made.played_at)
    assert (merged.encode(), conflicts) == (document, [])
    stats = merged.payload.stats
    assert stats.games_played == stats.games_won + stats.games_lost
    assert stats.games_won == stats.draw_one_wins + stats.draw_three_wins
    assert stats.win_streak_current <= stats.win_streak_best <= stats.games_won


@given(st.text(), times)
def test_made_up_replays_have_the_shape_of_the_clients(name, played_at):
    """The header is valid, and a client could write every move."""
    received = read_replay(replay(name, played_at))
    assert received.header.seed is not None
    assert re.fullmatch(rb'.*"moves":\[(?:(?:"StockClick"|\{"Move":\{[^\[\]]+\}\}),?)+\].*', received.raw)


def test_made_up_players_are_spread_over_a_year():
    """Some have opted in, and all names are valid. The same number makes the same player."""
    made = [player(number, NOW) for number in range(1, 1001)]
    assert made[:10] == [player(number, NOW) for number in range(1, 11)]
    assert all(NOW - timedelta(days=DAYS) <= one.created_at <= one.played_at <= NOW for one in made)
    assert len({one.created_at.date() for one in made}) > 200
    assert sum(NOW - one.created_at < timedelta(days=30) for one in made) > 250
    names = [one.display_name for one in made if one.display_name is not None]
    assert 0.8 * OPTED_IN < len(names) / len(made) < 1.2 * OPTED_IN
    assert all(check_display_name(name) == name for name in names)
    assert check_username(f"{PREFIX}999999999")


def test_won_games_of_the_stock_are_verified(full):
    """The search finds each win after a short time."""
    for number in range(0, len(DEALS), 1 if full else 25):
        assert check_literally(replay("a name", NOW, won_game(number))).status is Status.VERIFIED


@given(st.integers(1, 30), st.integers(0, 70), st.integers(1, 50))
def test_stock_has_as_many_replays_as_wanted(players, replays, first):
    """No player has two more than another."""
    stock = Stock(first=first, players=players, replays=replays, verified=0, now=NOW)
    counts = [stock.turns(number) for number in stock.numbers]
    assert sum(counts) == replays
    assert max(counts) - min(counts) <= 1
