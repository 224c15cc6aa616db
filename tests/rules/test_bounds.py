"""The bounds of progress (docs/sync.md "The payload")."""

import contextlib
import time
from datetime import date, timedelta

import pytest

from solisync.errors import BadRequest
from solisync.rules.documents import read_pushed
from solisync.rules.sync import MOST, check_bounds
from tests.harness.payloads import encode, progress_of
from tests.rules.documents import example


def achievements(count, **more):
    return [
        {"id": f"a{number}", "unlocked": True, "unlock_date": None, "reward_granted": False, **more}
        for number in range(count)
    ]


def dates(count):
    return [(date(2000, 1, 1) + timedelta(days=number)).isoformat() for number in range(count)]


def unknown(count):
    """Return so many unknown fields, a quarter of them in each of the four places."""
    quarter, rest = divmod(count, 4)
    changes = {f"zz_{number}": 1 for number in range(quarter + rest)}
    changes |= {f"{part}__zz_{number}": 1 for part in ("stats", "progress") for number in range(quarter)}
    return example(**changes, achievements=achievements(1, **{f"zz_{number}": 1 for number in range(quarter)}))


DOCUMENTS = {
    "achievements": lambda count: example(achievements=achievements(count)),
    "unlocked_card_backs": lambda count: example(progress__unlocked_card_backs=[*range(count)]),
    "unlocked_backgrounds": lambda count: example(progress__unlocked_backgrounds=[*range(count)]),
    "weekly_goal_progress": lambda count: example(progress__weekly_goal_progress={f"g{n}": 1 for n in range(count)}),
    "daily_challenge_history": lambda count: example(progress__daily_challenge_history=dates(count)),
    "daily_won_later": lambda count: example(progress__daily_won_later=dates(count)),
    "unknown_fields": unknown,
}


@pytest.mark.parametrize("name", MOST._fields)
def test_count_beyond_its_bound_is_refused_by_name(name):
    """The bound itself is accepted."""
    make, most = DOCUMENTS[name], getattr(MOST, name)
    check_bounds(make(most), None)
    with pytest.raises(BadRequest, match=f"at most {most:,} {name.replace('_', ' ')}"):
        check_bounds(make(most + 1), None)


@pytest.mark.parametrize("name", MOST._fields)
def test_count_beyond_its_bound_may_stay_but_not_grow(name):
    """A push passes if its count isn't larger than the stored one."""
    make, most = DOCUMENTS[name], getattr(MOST, name)
    check_bounds(make(most + 2), make(most + 2))
    check_bounds(make(most + 1), make(most + 2))
    with pytest.raises(BadRequest):
        check_bounds(make(most + 3), make(most + 2))
    with pytest.raises(BadRequest):
        check_bounds(make(most + 1), make(most))


def cost(number):
    """The processor time of reading a push of 64 KiB with a list of this number."""
    before, after = encode(progress_of()).split(b'"unlocked_card_backs": [')
    body, least = before + b'"unlocked_card_backs": [' + number * (60_000 // len(number)) + after, 60.0
    for _ in range(5):
        began = time.process_time()
        with contextlib.suppress(BadRequest):
            read_pushed(body)
        least = min(least, time.process_time() - began)
    return least


@pytest.mark.parametrize("number", [b"1e308,", b"1E+23,"])
def test_push_of_numbers_that_no_field_takes_costs_no_more_than_another(number):
    """Reading 1e308 would take 30 times as long as reading 1.0, 1e23 twice as long; a guest may push without end."""
    assert cost(number) < cost(b"1.0,")
