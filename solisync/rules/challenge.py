"""Deals, and the daily challenge, which depends only on the UTC date (docs/protocol.md "Deals")."""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Annotated

from msgspec import Meta, Struct

from ..errors import NotFound
from ..klondike import DRAW_MODES, SEED_PATTERN, read_seed
from ..klondike.daily import FIRST_DAY, SCORE_GOALS, daily_seed, goal_kind
from .shapes import U64

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

# by the kind of a goal: the most seconds
_SECONDS = (300, None, 180, None, 480, None)
_EARLY_SCORES = {1: 4_000, 3: 5_000}
"""The scores to reach before FIRST_DAY, with the bonus for time that the pages add."""


class DailyChallenge(Struct, frozen=True, kw_only=True):
    """The deal of one day and its goal."""

    date: date
    seed: U64
    description: str
    target_score: int | None
    max_time_secs: int | None


@lru_cache(maxsize=100)  # most requests are about the same few days
def daily_challenge(day: date) -> DailyChallenge:
    """Return the challenge of `day`."""
    kind = goal_kind(day)
    seconds = _SECONDS[kind]
    score = (_EARLY_SCORES if day < FIRST_DAY else SCORE_GOALS).get(kind)
    if seconds is not None:
        description = f"Win within {seconds // 60} minutes"
    elif score is not None:
        description = f"Score {score:,} points or more"
    else:
        description = "Win the deal of the day"
    return DailyChallenge(
        date=day, seed=daily_seed(day), description=description, target_score=score, max_time_secs=seconds
    )


class DealtCards(Struct, frozen=True):
    """A deal: each pile from bottom to top; the last card of a column is face up."""

    seed: Annotated[str, Meta(description="as text, because scripts round large numbers", pattern=SEED_PATTERN)]
    draw_mode: str
    tableau: list[list[int]]
    stock: list[int]


def read_deal(seed: str, draw_mode: str) -> int:
    """The seed of a deal that a path names; raises NotFound if the deal doesn't exist."""
    number = read_seed(seed)
    if number is None or draw_mode not in DRAW_MODES:
        raise NotFound()
    return number


def read_day(text: str) -> date | None:
    """The day that a path or a query names, such as 2026-11-20; None for any other text."""
    with suppress(ValueError):
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    return None


def day_before(day: date) -> date:
    """The day before a day; the first day of all has none before it."""
    return date.fromordinal(max(1, day.toordinal() - 1))


def seconds_left(now: datetime) -> int:
    """Whole seconds until the next challenge, at UTC midnight; at least 1."""
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
    return max(1, int((midnight - now).total_seconds()))
