"""The deals of the days. Those from FIRST_DAY to the end of the table were chosen because a search won them.

A day's seed is a number made of its date, plus the day's offset. `daily.txt` has the offsets that `daily_maker` found:
in each line a day, and a digit in base 36 for it and for each day after it.
"""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path

from .deal import SEED_MAX

FIRST_DAY = date(2027, 1, 1)
SCORE_GOALS = {1: 300, 3: 500}
"""The score to reach, from FIRST_DAY on, if the kind of the day's goal is one of these."""

_GOAL_KINDS = 6
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
OFFSET_MAX = len(_DIGITS) - 1


def daily_seed(day: date) -> int:
    """The seed of the day's deal."""
    return seed_at(day, OFFSETS.get(day, 0))


def seed_at(day: date, offset: int) -> int:
    """The seed of a day with this offset: the bytes of the date, folded by seed·31 + byte, plus the offset."""
    seed = 0
    for byte in day.isoformat().encode("ascii"):
        seed = seed * 31 + byte
    return (seed + offset) & SEED_MAX


def goal_kind(day: date) -> int:
    """The kind of the day's goal, 0 to 5. It doesn't depend on the offset."""
    return seed_at(day, 0) % _GOAL_KINDS


def days_between(first: date, last: date) -> Iterator[date]:
    """Yield the days from `first` to `last`."""
    return (first + timedelta(days) for days in range((last - first).days + 1))


def read_offsets(table: str) -> dict[date, int]:
    """The offset of each day of a table; raises ValueError if a line has another form."""
    offsets: dict[date, int] = {}
    for line in table.splitlines():
        begin, _, digits = line.partition(" ")
        try:
            first = date.fromisoformat(begin)
            offsets |= {first + timedelta(days): _DIGITS.index(digit) for days, digit in enumerate(digits)}
        except ValueError:
            raise ValueError(f"not a day and digits: {line!r}") from None
    return offsets


def digits_of(offsets: Iterable[int]) -> str:
    """The digits of offsets, as in the table."""
    return "".join(_DIGITS[offset] for offset in offsets)


OFFSETS = read_offsets(Path(__file__).with_name("daily.txt").read_text("ascii"))
"""The offsets of the table that comes with this version."""
LAST_DAY = max(OFFSETS)
"""The last day of the table. Later days have offset 0, and deals that perhaps can't be won."""
