"""The effect of finished games on progress (docs/sync.md "What a game adds").

games.json has histories of mode Classic with the progress that follows, as the JavaScript client of version 1.1
computed it. Its average had whole seconds after each game, and so sank; the service's is exact.
"""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, structs

from solisync.errors import BadRequest
from solisync.klondike.daily import daily_seed
from solisync.rules.documents import default_document
from solisync.rules.game_effects import with_games
from solisync.rules.games import GameResult, ReceivedGame, read_game, read_games, results_of
from solisync.rules.shapes import NIL, U32_MAX, U64_MAX
from solisync.rules.sync import HISTORY_DAYS
from tests.harness.games import game

HISTORIES = json.loads(Path(__file__).with_name("games.json").read_text("utf-8"))
NOW = datetime(2027, 6, 1, 12, tzinfo=UTC)
EMPTY = default_document(NIL, NOW)
DAY = date(2027, 5, 20)


def read(**fields):
    return read_game(Raw(msgspec.json.encode(game(**fields))))


def added(*games, document=EMPTY, latest=None, now=NOW):
    """Return the document with these games."""
    return with_games(document, games, latest, now)[0]


def stats(*games, **more):
    return added(*games, **more).payload.stats


def progress(*games, **more):
    return added(*games, **more).payload.progress


def daily(day=DAY, hours=12, **fields):
    """Return a win of a day's deal, so many hours after the day's begin."""
    ended_at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=hours)
    return read(seed=daily_seed(day), ended_at=ended_at.isoformat(), **fields)


@pytest.mark.parametrize("history", HISTORIES)
def test_games_in_order_have_the_effect_of_the_former_client(history):
    payload = added(*(read(**each) for each in history["games"])).payload
    times = [each["seconds"] for each in history["games"] if each["won"]]
    expected = {
        **history["stats"],
        "fastest_win_seconds": history["stats"]["fastest_win_seconds"] or U64_MAX,
        "avg_time_seconds": sum(times) // len(times) if times else 0,
    }
    assert msgspec.to_builtins(payload.stats).items() >= expected.items()
    assert msgspec.to_builtins(payload.progress).items() >= history["progress"].items()


@pytest.mark.parametrize("history", HISTORIES[:5])
def test_order_of_a_request_changes_nothing(history):
    games = [read(**each) for each in history["games"]]
    shuffled = Random(1).sample(games, len(games))
    assert stats(*shuffled) == stats(*games)
    assert progress(*shuffled) == progress(*games)


@pytest.mark.parametrize(
    ("mode", "records"),
    [
        ("Classic", "classic"),
        ("Zen", "zen"),
        ("Challenge", "challenge"),
        ("TimeAttack", None),
        ({"Difficulty": "Hard"}, None),
    ],
)
def test_records_are_kept_for_three_modes(mode, records):
    """Every win counts for the statistics of all modes."""
    found = structs.asdict(stats(read(mode=mode, score=605, seconds=90)))
    best = {name for name in ("classic", "zen", "challenge") if found[f"{name}_best_score"] == 605}
    fastest = {name for name in ("classic", "zen", "challenge") if found[f"{name}_fastest_win_seconds"] == 90}
    assert best == fastest == ({records} if records else set())
    assert (found["best_single_score"], found["fastest_win_seconds"], found["games_won"]) == (605, 90, 1)


def test_game_of_no_seconds_sets_no_record_of_time():
    found = stats(read(seconds=0))
    assert (found.fastest_win_seconds, found.classic_fastest_win_seconds) == (U64_MAX, 0)


@pytest.mark.parametrize(("kept", "average"), [(1_199, 109), (None, 108), (900, 108), (1_200, 108)])
def test_average_is_of_the_kept_time_while_that_agrees_with_it(kept, average):
    """The document has ten wins of 119 seconds on average: from 1,190 to 1,199 in all."""
    ten = structs.replace(EMPTY.payload.stats, games_played=10, games_won=10, avg_time_seconds=119)
    document = EMPTY._replace(payload=structs.replace(EMPTY.payload, stats=ten))
    found = with_games(document, [read(seconds=0)], None, NOW, kept).document
    assert found.payload.stats.avg_time_seconds == average


def test_average_of_a_thousand_requests_is_exact():
    """Whole seconds after each game would end at the fastest one."""
    times = Random(1).choices(range(200, 400), k=1_000)
    document, time = EMPTY, None
    for seconds in times:
        document, _, time = with_games(document, [read(seconds=seconds)], None, NOW, time)
    assert (time, document.payload.stats.avg_time_seconds) == (sum(times), sum(times) // 1_000)


def test_lost_game_ends_the_streak():
    found = stats(read(), read(won=False, ended_at="2026-11-20T19:00:00Z"))
    assert (found.games_played, found.games_won, found.games_lost) == (2, 1, 1)
    assert (found.win_streak_current, found.win_streak_best) == (0, 1)


@pytest.mark.parametrize("won", [True, False])
def test_game_before_the_latest_one_changes_no_streak(won):
    first = added(read())
    found = stats(
        read(won=won, ended_at="2026-11-19T00:00:00Z"), document=first, latest=datetime(2026, 11, 20, 18, tzinfo=UTC)
    )
    assert (found.games_played, found.win_streak_current, found.win_streak_best) == (2, 1, 1)


def test_second_late_game_changes_no_streak():
    """The first late game of a request leaves the time of the latest one as it was."""
    late = [read(ended_at=f"2026-11-19T0{hour}:00:00Z", won=hour == 1) for hour in (1, 2)]
    found = stats(*late, document=added(read()), latest=datetime(2026, 11, 20, 18, tzinfo=UTC))
    assert (found.games_played, found.win_streak_current) == (3, 1)


def test_game_of_an_earlier_week_leaves_the_goals_of_the_later_one():
    first = added(read())
    late = progress(read(ended_at="2026-11-10T00:00:00Z"), document=first)
    assert (late.weekly_goal_week_iso, late.weekly_goal_progress) == (
        first.payload.progress.weekly_goal_week_iso,
        first.payload.progress.weekly_goal_progress,
    )


def test_local_date_decides_the_week():
    """In UTC it is Sunday already."""
    assert progress(read(ended_at="2026-11-22T23:30:00-05:00")).weekly_goal_week_iso == "2026-W47"
    assert progress(read(ended_at="2026-11-23T04:30:00Z")).weekly_goal_week_iso == "2026-W48"


def test_game_of_the_future_counts_as_now():
    found = progress(read(ended_at="2099-01-01T00:00:00+02:00"))
    assert found.weekly_goal_week_iso == "2027-W22"


def test_game_of_the_future_keeps_its_time_zone():
    """Now is Sunday in UTC, and Monday where the game was played."""
    now = datetime(2027, 6, 6, 23, tzinfo=UTC)
    assert progress(read(ended_at="2099-01-01T00:00:00+02:00"), now=now).weekly_goal_week_iso == "2027-W23"


def test_games_of_a_clock_that_is_ahead_keep_their_order():
    """The losing game was the first."""
    lost, won, won_again = (read(won=hour > 1, ended_at=f"2099-01-01T0{hour}:00:00Z") for hour in (1, 2, 3))
    assert stats(won_again, won, lost).win_streak_current == 2


def test_games_that_end_together_are_in_the_order_of_the_request():
    assert stats(read(won=False), read()).win_streak_current == 1
    assert stats(read(), read(won=False)).win_streak_current == 0


def test_counters_stop_at_their_bounds():
    """Those of an account that other software has filled."""
    full = structs.replace(
        EMPTY.payload.stats,
        **dict.fromkeys(("games_played", "games_won", "win_streak_current", "draw_one_wins"), U32_MAX),
        lifetime_score=U64_MAX,
        avg_time_seconds=U64_MAX,
    )
    rich = structs.replace(EMPTY.payload.progress, total_xp=U64_MAX)
    document = EMPTY._replace(payload=structs.replace(EMPTY.payload, stats=full, progress=rich))
    payload = added(read(), read(won=False), document=document).payload
    assert payload.stats.games_played == payload.stats.games_won == payload.stats.draw_one_wins == U32_MAX
    assert (payload.stats.lifetime_score, payload.progress.total_xp) == (U64_MAX, U64_MAX)
    assert payload.progress.level == U32_MAX


def test_shares_have_the_experience_of_each_game():
    """The first win of the week under five minutes brings the week's goal."""
    document, shares, _ = with_games(EMPTY, [read(seconds=100, score=1), read(seconds=100, won=False)], None, NOW)
    assert [share.xp for share in shares] == [50 + 17 + 25 + 75, 0]
    assert document.payload.progress.total_xp == 167


def test_win_in_the_time_of_its_day_enters_the_history():
    found = progress(daily())
    assert found.daily_challenge_history == [DAY]
    assert (found.daily_challenge_last_completed, found.daily_challenge_streak) == (DAY, 1)


@pytest.mark.parametrize(("hours", "in_time"), [(-30, True), (35.99, True), (36, False), (300, False)])
def test_time_of_a_day_ends_after_36_hours(hours, in_time):
    """A clock that is behind counts, because the deals of coming days can be known."""
    found = progress(daily(hours=hours))
    assert found.daily_challenge_history == ([DAY] if in_time else [])
    assert found.daily_won_later == ([] if in_time else [DAY])


def test_day_to_come_is_no_day():
    found = progress(daily(day=NOW.date() + timedelta(1), hours=0))
    assert found.daily_challenge_history == found.daily_won_later == []


def test_zen_wins_no_day():
    assert progress(daily(mode="Zen")).daily_challenge_history == []


def test_day_long_ago_is_found_by_the_end_of_the_game():
    """Of days more than a year ago, only those count whose time had not ended."""
    old = NOW.date() - timedelta(HISTORY_DAYS + 50)
    assert progress(daily(old)).daily_challenge_history == [old]
    assert progress(daily(old, hours=25)).daily_challenge_history == [old]
    assert progress(daily(old, hours=80)).daily_won_later == []


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_three_days_are_a_streak_in_any_order_of_arrival(order):
    document = EMPTY
    for place in order:
        document = added(daily(DAY + timedelta(place)), document=document)
    found = document.payload.progress
    assert (found.daily_challenge_streak, found.daily_challenge_longest_streak) == (3, 3)
    assert found.daily_challenge_last_completed == DAY + timedelta(2)


def test_earlier_days_are_the_longest_streak_in_any_order_of_arrival():
    """The day after them was missed."""
    document = added(daily(DAY + timedelta(4)))
    for place in (2, 0, 1):
        document = added(daily(DAY + timedelta(place)), document=document)
    found = document.payload.progress
    assert (found.daily_challenge_streak, found.daily_challenge_longest_streak) == (1, 3)


def test_win_of_the_last_day_enters_a_history_without_it():
    """Clients that push totals may leave out the history."""
    before = structs.replace(EMPTY.payload.progress, daily_challenge_last_completed=DAY, daily_challenge_streak=7)
    document = EMPTY._replace(payload=structs.replace(EMPTY.payload, progress=before))
    found = progress(daily(seconds=1), document=document)
    assert (found.daily_challenge_history, found.daily_challenge_streak) == ([DAY], 7)
    assert found.total_xp == progress(read(seconds=1)).total_xp  # the first win of the day has brought its goal's


def test_day_before_a_full_history_brings_nothing():
    """The history would forget the day immediately, and each win would be the first of its day."""
    full = [NOW.date() - timedelta(each) for each in reversed(range(HISTORY_DAYS))]
    before = structs.replace(
        EMPTY.payload.progress, daily_challenge_history=full, daily_challenge_last_completed=full[-1]
    )
    document = EMPTY._replace(payload=structs.replace(EMPTY.payload, progress=before))
    found = progress(daily(full[0] - timedelta(1), seconds=1), document=document)
    assert found.daily_challenge_history == full
    assert found.total_xp == progress(read(seconds=1)).total_xp


def test_missed_day_begins_a_new_streak():
    found = progress(daily(DAY), daily(DAY + timedelta(2)))
    assert (found.daily_challenge_streak, found.daily_challenge_longest_streak) == (1, 1)


def test_only_the_first_win_of_a_day_brings_the_experience_of_its_goal():
    once, twice = progress(daily(seconds=1)), progress(daily(seconds=1), daily(seconds=1, hours=13))
    assert once.total_xp - progress(read(seconds=1)).total_xp == 100
    assert twice.total_xp - once.total_xp == 50 + 50 + 25
    assert twice.daily_challenge_streak == 1


def test_win_of_an_earlier_day_leaves_the_last_one():
    found = progress(daily(DAY), daily(DAY - timedelta(5)))
    assert (found.daily_challenge_last_completed, found.daily_challenge_streak) == (DAY, 1)
    assert found.daily_challenge_history == [DAY - timedelta(5), DAY]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 800), st.integers(0, 900), st.booleans()), max_size=30), st.data()
)
def test_sums_are_the_same_in_any_split(made, data):
    """Games of one request, or of many in any order."""
    games = [
        read(won=won, score=score, seconds=seconds, draw_mode="DrawThree" if three else "DrawOne")
        for won, score, seconds, three in made
    ]
    document, latest = EMPTY, None
    for each in data.draw(st.permutations(games)):
        document = added(each, document=document, latest=latest)
        latest = max(filter(None, (latest, each.ended_at)))
    one, other = document.payload, added(*games).payload
    for name in ("games_played", "games_won", "games_lost", "lifetime_score", "draw_one_wins", "draw_three_wins"):
        assert getattr(one.stats, name) == getattr(other.stats, name)
    assert one.progress.total_xp == other.progress.total_xp


def test_whole_numbers_may_be_doubles():
    """The JSON of some engines has no integers."""
    text = msgspec.json.encode(game(score=605, seconds=90))
    assert read_game(Raw(text.replace(b"605", b"605.0").replace(b":90", b":9.0e1"))) == read_game(Raw(text))


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": "classic"},
        {"mode": {"Difficulty": "Nope"}},
        {"draw_mode": 1},
        {"won": 1},
        {"score": -1},
        {"score": 2**31},
        {"score": 1.5},
        {"seconds": None},
        {"seconds": "100"},
        {"ended_at": "2026-11-20"},
        {"ended_at": "2026-11-20T10:00:00"},
        {"ended_at": "2026-11-20T10:00:00+0100"},
        {"ended_at": "2026-02-30T10:00:00Z"},
        {"ended_at": "0001-01-01T00:00:00+14:00"},
        {"ended_at": 0},
        {"undone": "no"},
    ],
)
def test_wrong_field_is_an_error_of_its_game(fields):
    sent = game(**fields)
    assert read_game(Raw(msgspec.json.encode(sent))) == GameResult(sent["game_id"], counted=False, error="bad_field")


@pytest.mark.parametrize("game_id", ["x", 7, None, "", "5d2c8f8e6f0a4c539b1e3a7d0c9e4b2"])
def test_unreadable_id_is_null_in_the_error(game_id):
    assert read(game_id=game_id) == GameResult(None, counted=False, error="bad_field")


def test_missing_field_is_an_error():
    sent = game()
    del sent["undone"]
    assert read_game(Raw(msgspec.json.encode(sent))).error == "bad_field"


def test_half_of_a_surrogate_pair_is_an_error_of_its_game():
    body = msgspec.json.encode({"games": [game(), game(mode="X")]}).replace(b'"X"', rb'"\ud800"')
    first, second = map(read_game, read_games(body).games)
    assert isinstance(first, ReceivedGame)
    assert (second.error, second.game_id is None) == ("bad_field", False)


@pytest.mark.parametrize("seed", ["x", -1, 2**64, 1.5, None, {}, "01"])
def test_seed_of_another_form_counts_as_absent(seed):
    assert read(seed=seed).seed is None


def test_seed_that_no_double_can_hold_counts_as_absent():
    body = json.dumps(game(seed="here")).encode().replace(b'"here"', b"1e400")
    assert read_game(Raw(body)).seed is None


@pytest.mark.parametrize("spelled", ["{%s}", "urn:uuid:%s", "%s"])
def test_id_is_read_in_any_spelling(spelled):
    sent = game()
    assert read(game_id=spelled % sent["game_id"].upper()).game_id == sent["game_id"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[]", "bad_field"),
        (b"{}", "bad_field"),
        (b'{"games": {}}', "bad_field"),
        (b'{"games": []}', "bad_field"),
        (b'{"games": [1]}', "bad_field"),
        (b'{"games": [null]}', "bad_field"),
        (b'{"games": [[]]}', "bad_field"),
        (b'{"games": [{}', "bad_json"),
        (b"", "bad_json"),
        (b'{"games": [%s]}' % b", ".join([b"{}"] * 101), "batch_too_large"),
    ],
)
def test_body_of_another_form_is_refused(body, code):
    with pytest.raises(BadRequest) as caught:
        read_games(body)
    assert caught.value.code == code


def test_id_that_appears_twice_counts_once():
    twice = read()
    results = results_of([twice, twice._replace(score=1), read(game_id=7)], {twice.game_id})
    assert [(each.counted, each.error) for each in results] == [(True, None), (False, None), (False, "bad_field")]
