"""The daily challenge (docs/protocol.md "Deals")."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.rules.challenge import daily_challenge, seconds_left
from tests.harness.constants import ROOT

TABLE = ROOT / "solisync" / "klondike" / "daily.txt"

SCORES = {1: 4000, 3: 5000}
SCORES_2027 = {1: 300, 3: 500}


def goal(kind, scores):
    """The most seconds, the score and the description of a goal."""
    if kind in scores:
        return None, scores[kind], f"Score {scores[kind]:,} points or more"
    seconds = {0: 300, 2: 180, 4: 480}.get(kind)
    return seconds, None, f"Win within {seconds // 60} minutes" if seconds else "Win the deal of the day"


def facts(challenge):
    return challenge.max_time_secs, challenge.target_score, challenge.description


def folded(day):
    seed = 0
    for character in str(day):
        seed = seed * 31 + ord(character)
    return seed % 2**64


@pytest.mark.parametrize(
    ("day", "seed", "kind"),
    [(date(2026, 4, 26), 1364344767969826, 4), (date(2026, 11, 20), 1364344768803968, 2)],
)
def test_known_days_keep_their_challenges(day, seed, kind):
    challenge = daily_challenge(day)
    assert (challenge.date, challenge.seed) == (day, seed)
    assert facts(challenge) == goal(kind, SCORES)


@given(st.dates(max_value=date(2026, 12, 31)) | st.dates(min_value=date(2032, 1, 1)))
def test_challenge_outside_the_table_follows_from_the_date(day):
    """The seed is computed from the date's text, and its remainder picks the goal."""
    challenge = daily_challenge(day)
    assert challenge.seed == folded(day)
    assert facts(challenge) == goal(challenge.seed % 6, SCORES if day.year < 2027 else SCORES_2027)


@given(st.dates(date(2027, 1, 1), date(2031, 12, 31)))
def test_day_of_the_table_has_another_seed_and_the_same_kind_of_goal(day):
    """A line of the table is a day, and the digits to be added to the seeds of that day and the days after it."""
    lines = dict(line.split() for line in TABLE.read_text().splitlines())
    offset = int(lines[f"{day.year}-01-01"][day.timetuple().tm_yday - 1], 36)
    challenge = daily_challenge(day)
    assert challenge.seed == folded(day) + offset
    assert facts(challenge) == goal(folded(day) % 6, SCORES_2027)


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
