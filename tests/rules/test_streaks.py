"""Streaks that fall, and dates of the future (docs/sync.md "Streaks", "Days in the future")."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from solisync.rules.counting import NO_GAMES, NOTHING_KNOWN, Basis, GameCounts, Known, add
from solisync.rules.merge import merge
from tests.harness.payloads import NOW
from tests.rules.documents import example

TODAY = NOW.date()
LATEST = date.fromordinal(TODAY.toordinal() + 1)
TOO_LATE = date.fromordinal(TODAY.toordinal() + 2)


def week(day):
    return "{}-W{:02}".format(*day.isocalendar())


def games(number, draw_three=0):
    return GameCounts(number, number, 10 * number, 5 * number, number, draw_three, 60 * number)


def facts(merged):
    stats, progress = merged.payload.stats, merged.payload.progress
    return (
        stats.win_streak_current,
        stats.win_streak_best,
        progress.daily_challenge_streak,
        progress.daily_challenge_longest_streak,
    )


def streaks(current, daily, day, best=9, longest=9):
    return example(
        stats__win_streak_current=current,
        stats__win_streak_best=best,
        progress__daily_challenge_streak=daily,
        progress__daily_challenge_longest_streak=longest,
        progress__daily_challenge_last_completed=day and day.isoformat(),
    )


def test_streaks_fall_if_the_device_had_all_games():
    """The pushed streaks replace both running streaks, without a conflict. The best streaks stay."""
    merged, conflicts = merge(streaks(0, 1, TODAY), streaks(7, 9, TODAY), NOW, had_all=True)
    assert (facts(merged), conflicts) == ((0, 9, 1, 9), [])


def test_streaks_stay_if_the_device_may_lack_games():
    """The higher streaks stay, and each difference is a conflict."""
    merged, conflicts = merge(streaks(0, 1, TODAY), streaks(7, 9, TODAY), NOW)
    assert (facts(merged), len(conflicts)) == ((7, 9, 9, 9), 2)


@pytest.mark.parametrize("day", [None, date(2026, 1, 1)], ids=["no day", "an earlier day"])
def test_daily_streak_stays_if_the_pushed_day_is_not_the_latest(day):
    """The streak belongs to the later of the two last days."""
    merged, conflicts = merge(streaks(0, 1, day), streaks(7, 9, date(2026, 1, 2)), NOW, had_all=True)
    assert facts(merged) == (0, 9, 9, 9)
    assert [conflict.field for conflict in conflicts] == ["daily_challenge_streak"]


def test_best_streak_is_at_least_the_streak_that_falls():
    """A record of an older version may lack the running streak."""
    merged, _ = merge(streaks(0, 0, TODAY, best=0, longest=0), streaks(7, 8, TODAY, best=0), NOW, had_all=True)
    assert facts(merged) == (0, 7, 0, 9)


def test_device_had_all_games_if_its_base_is_what_is_stored():
    """A device with five new games on all stored ones knows all. After two games elsewhere, it lacks these."""
    assert add(games(105), games(100), Known(games(100), ())).had_all_of(games(100))
    assert not add(games(105), games(102), Known(games(100), ())).had_all_of(games(102))


def test_device_had_all_games_if_a_merge_has_lowered_wins_of_a_draw_mode():
    """The counts that the sessions have received decide."""
    told = games(100, draw_three=3)
    assert add(games(105, draw_three=3), games(100), Known(told, ())).had_all_of(told)


@pytest.mark.parametrize(
    ("known", "basis"), [(NOTHING_KNOWN, Basis.MAXIMUM), (Known(games(9), ()), Basis.STALE)], ids=lambda each: str(each)
)
def test_device_of_an_uncounted_push_knew_nothing(known, basis):
    """A first push without a pull, and a late push, aren't counted."""
    total = add(games(5), NO_GAMES, known)
    assert (total.basis, total.had_all_of(NO_GAMES)) == (basis, False)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=20))
def test_single_device_gets_its_streaks_back(played):
    """One device wins, loses and repeats pushes. The server never changes its streak, and reports no conflict."""
    known, told, stored = Known(None, (NO_GAMES,)), NO_GAMES, streaks(0, 0, None, best=0, longest=0)
    mine, streak = NO_GAMES, 0
    for won, twice in played:
        mine, streak = GameCounts(mine[0] + 1, mine[1] + won, *mine[2:]), (streak + 1) * won
        for _ in range(1 + twice):
            total = add(mine, told, known)
            pushed = streaks(streak, 0, None, best=0, longest=0)
            stored, conflicts = merge(pushed, stored, NOW, had_all=total.had_all_of(told))
            assert (stored.payload.stats.win_streak_current, conflicts) == (streak, [])
            known, told = known.after(mine, total.counts, total.basis), total.counts


def future(day, **changes):
    return example(
        progress__daily_challenge_last_completed=day.isoformat(),
        progress__daily_challenge_streak=5,
        progress__daily_challenge_longest_streak=5,
        progress__daily_challenge_history=[TODAY.isoformat(), day.isoformat()],
        progress__weekly_goal_week_iso=week(day),
        progress__weekly_goal_progress={"wins": 3},
        **changes,
    ).payload.progress


def merged_progress(pushed, stored=None):
    merged, conflicts = merge(pushed, stored, NOW, latest=LATEST)
    assert conflicts == []
    return merged.payload.progress


def dated(day):
    """Return a document with the progress of `future`."""
    document = example()
    return document._replace(payload=structs.replace(document.payload, progress=future(day)))


def test_tomorrow_is_kept():
    """A player east of Greenwich may be a day ahead."""
    assert merged_progress(dated(LATEST)) == future(LATEST)


@pytest.mark.parametrize("stored", [None, dated(TODAY)], ids=["first push", "second push"])
def test_days_after_tomorrow_count_as_absent(stored):
    """The last day, its streak and the date of the history are left out. Stored values stay, without a conflict."""
    progress = merged_progress(dated(TOO_LATE), stored)
    assert progress.daily_challenge_last_completed == (stored and TODAY)
    assert progress.daily_challenge_streak == (5 if stored else 0)
    assert progress.daily_challenge_history == [TODAY]


@pytest.mark.parametrize("stored", [None, dated(TODAY)], ids=["first push", "second push"])
def test_weeks_after_tomorrows_week_count_as_absent(stored):
    """A week of the future is left out with its goals."""
    far = date(TODAY.year + 1, 6, 1)
    progress = merged_progress(dated(far), stored)
    assert progress.weekly_goal_week_iso == (stored and week(TODAY))
    assert progress.weekly_goal_progress == ({"wins": 3} if stored else {})


def test_stored_days_of_the_future_stay():
    """An older version stored them. A push neither removes them nor adds others."""
    stored = dated(TOO_LATE)
    later = date.fromordinal(TOO_LATE.toordinal() + 1)
    progress = merged_progress(dated(later), stored)
    assert progress.daily_challenge_last_completed == TOO_LATE
    assert progress.daily_challenge_history == [TODAY, TOO_LATE]
