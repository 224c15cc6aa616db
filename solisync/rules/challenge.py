"""Deals, and the daily challenge, which depends only on the UTC date (docs/protocol.md "Deals")."""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from ..errors import NotFound
from ..klondike import DRAW_MODES, SEED_PATTERN, read_seed
from .shapes import U64

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

# (target score, most seconds, description), chosen by seed mod 6
_GOALS = (
    (None, 300, "Win within 5 minutes"),
    (4_000, None, "Score 4,000 points or more"),
    (None, 180, "Win within 3 minutes"),
    (5_000, None, "Score 5,000 points or more"),
    (None, 480, "Win within 8 minutes"),
    (None, None, "Win the deal of the day"),
)


class DailyChallenge(Struct, frozen=True, kw_only=True):
    """The deal of one day and its goal."""

    date: date
    seed: U64
    description: str
    target_score: int | None
    max_time_secs: int | None


def daily_challenge(day: date) -> DailyChallenge:
    """Return the challenge of `day`."""
    seed = 0
    for byte in day.isoformat().encode("ascii"):
        seed = (seed * 31 + byte) % 2**64
    target_score, max_time_secs, description = _GOALS[seed % len(_GOALS)]
    return DailyChallenge(
        date=day, seed=seed, description=description, target_score=target_score, max_time_secs=max_time_secs
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


def seconds_left(now: datetime) -> int:
    """Whole seconds until the next challenge, at UTC midnight; at least 1."""
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
    return max(1, int((midnight - now).total_seconds()))
