"""The deals of the days: the table, and the command that makes it."""

import random
import subprocess
import sys
from datetime import date, timedelta

import pytest

from solisync.klondike import DRAW_MODES, find_win
from solisync.klondike.daily import FIRST_DAY, LAST_DAY, OFFSETS, SCORE_GOALS, daily_seed, days_between, goal_kind
from solisync.klondike.daily_maker import best_score, choose

SOLVED = {date(2027, 1, 1): 0, date(2027, 1, 2): 1, date(2027, 1, 21): 2}
"""Days with their offsets; the goals of the first and the last are scores."""
FIRST, SECOND = [*SOLVED][:2]


def made(*arguments):
    """Run the command; return exit status, output and errors."""
    done = subprocess.run(
        [sys.executable, "-m", "solisync.klondike", "daily", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_table_has_each_day_until_the_end_of_2031():
    assert [*OFFSETS] == [*days_between(date(2027, 1, 1), date(2031, 12, 31))]
    assert (date(2027, 1, 1), date(2031, 12, 31)) == (FIRST_DAY, LAST_DAY)


def offset_found(day):
    """Return the offset that a search finds for a day of the table."""
    return choose(day, {daily_seed(earlier) for earlier in OFFSETS if earlier < day}, best_score).offset


def test_no_deal_is_that_of_two_days():
    assert len({daily_seed(day) for day in OFFSETS}) == len(OFFSETS)


@pytest.mark.parametrize("day", SOLVED)
def test_search_chooses_the_deal_of_the_table(day):
    assert offset_found(day) == OFFSETS[day] == SOLVED[day]


@pytest.mark.long
def test_search_chooses_the_deals_of_a_hundred_days():
    """Both draw modes are won, one of them with the score of the goal."""
    for day in random.sample([*OFFSETS], 100):
        assert offset_found(day) == OFFSETS[day], day
        scores = [find_win(daily_seed(day), draw_mode).score for draw_mode in DRAW_MODES]
        assert max(scores) >= SCORE_GOALS.get(goal_kind(day), 0), day


@pytest.mark.long
def test_command_prints_the_digits_of_the_table():
    status, out, err = made(FIRST, SECOND, "--processes", 2)
    assert (status, out) == (0, f"{SOLVED[FIRST]}{SOLVED[SECOND]}\n")
    assert err.startswith("2 days, ")


def test_command_continues_where_it_was_stopped(tmp_path):
    """The file's first day has an offset that no search finds, and its last line is torn."""
    kept = tmp_path / "kept"
    kept.write_text(f"{FIRST} z\n{SECOND}")
    for _ in range(2):
        status, out, _ = made(FIRST, SECOND, "--kept", kept)
        assert (status, out) == (0, f"z{SOLVED[SECOND]}\n")
        assert kept.read_text() == f"{FIRST} z\n{SECOND} {SOLVED[SECOND]}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FIRST_DAY - timedelta(1), FIRST_DAY), "FROM must not be before 2027-01-01"),
        (("2027-02-30", "2027-03-01"), "not a day: '2027-02-30'"),
        ((FIRST_DAY, FIRST_DAY, "--kept", "/dev/full/none"), "Not a directory"),
    ],
)
def test_command_refuses_what_it_can_not_use(arguments, message):
    status, out, err = made(*arguments)
    assert (status, out) == (2, "")
    assert message in err
