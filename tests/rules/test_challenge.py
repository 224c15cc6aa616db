"""The daily challenge (docs/protocol.md "Deals")."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.rules.challenge import daily_challenge, seconds_left

GOALS = {
    0: (None, 300, "Win within 5 minutes"),
    1: (4000, None, "Score 4,000 points or more"),
    2: (None, 180, "Win within 3 minutes"),
    3: (5000, None, "Score 5,000 points or more"),
    4: (None, 480, "Win within 8 minutes"),
    5: (None, None, "Win the deal of the day"),
}


@pytest.mark.parametrize(
    ("day", "seed", "goal"),
    [(date(2026, 4, 26), 1364344767969826, 4), (date(2026, 11, 20), 1364344768803968, 2)],
)
def test_known_days_keep_their_challenges(day, seed, goal):
    challenge = daily_challenge(day)
    assert (challenge.date, challenge.seed) == (day, seed)
    assert (challenge.target_score, challenge.max_time_secs, challenge.description) == GOALS[goal]


@given(st.dates())
def test_challenge_of_a_day_follows_from_its_date(day):
    """The seed is computed from the date's text, and its remainder picks the goal."""
    seed = 0
    for character in str(day):
        seed = seed * 31 + ord(character)
    challenge = daily_challenge(day)
    assert challenge.seed == seed % 2**64
    assert (challenge.target_score, challenge.max_time_secs, challenge.description) == GOALS[challenge.seed % 6]


@pytest.mark.parametrize(
    ("before_midnight", "expected"),
    [
        (timedelta(microseconds=1), 1),
        (timedelta(seconds=1), 1),
        (timedelta(seconds=90, microseconds=5), 90),
        (timedelta(1), 86_400),
    ],
)
def test_cache_time_ends_at_midnight(before_midnight, expected):
    """The time is at least a second."""
    assert seconds_left(datetime(2026, 11, 21, tzinfo=UTC) - before_midnight) == expected
