"""`python -m solisync.klondike daily FROM TO`: find the offsets of days, so that their deals can be won.

A day's offset is the least with a deal that no earlier day has, and that `find_win` wins in both draw modes. If the
day's goal is a score, one of the two wins must reach it.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from datetime import date
from multiprocessing import Pool
from multiprocessing.pool import Pool as PoolType
from pathlib import Path
from typing import NamedTuple, TextIO

from .daily import (
    FIRST_DAY,
    OFFSET_MAX,
    OFFSETS,
    SCORE_GOALS,
    daily_seed,
    days_between,
    digits_of,
    goal_kind,
    read_offsets,
    seed_at,
)
from .recording import DRAW_MODES
from .solver import find_win

_AHEAD = 10  # deals to search at the same time
_REPORT_SECONDS = 10

Scores = Callable[[int], int | None]


class Choice(NamedTuple):
    """The offset of a day, and the number of deals before it that were passed over, by reason."""

    day: date
    offset: int
    taken: int
    """Earlier days have these deals."""
    not_won: int
    """The search found no win in one of the draw modes."""
    score_too_low: int


def choose(day: date, taken: AbstractSet[int], score_of: Scores) -> Choice:
    """Find a day's offset; `taken` has the seeds of earlier days."""
    goal = SCORE_GOALS.get(goal_kind(day), 0)
    passed = {"taken": 0, "not_won": 0, "score_too_low": 0}
    for offset in range(OFFSET_MAX + 1):
        if (seed := seed_at(day, offset)) in taken:
            passed["taken"] += 1
        elif (score := score_of(seed)) is None:
            passed["not_won"] += 1
        elif score < goal:
            passed["score_too_low"] += 1
        else:
            return Choice(day, offset, **passed)
    raise AssertionError(f"{day}: no offset up to {OFFSET_MAX} has a deal that can be won")


def best_score(seed: int) -> int | None:
    """The higher score of the wins that a search finds in both draw modes, or None if it finds none in one of them."""
    scores = []
    for draw_mode in DRAW_MODES:
        if (win := find_win(seed, draw_mode)) is None:
            return None
        scores.append(win.score)
    return max(scores)


def scores_from(pool: PoolType) -> Scores:
    """Return `best_score`, which finds in all processes what the next days need too: their seeds are neighbours."""
    known: dict[int, int | None] = {}

    def score_of(seed: int) -> int | None:
        if seed not in known:
            missing = [each for each in range(seed, seed + _AHEAD) if each not in known]
            known.update(zip(missing, pool.map(best_score, missing, chunksize=1), strict=True))
        return known[seed]

    return score_of


def main(arguments: list[str]) -> int:
    """Run the command, and return its exit status."""
    options = _parser().parse_args(arguments)
    if not FIRST_DAY <= options.first <= options.last:
        print(f"klondike daily: FROM must not be before {FIRST_DAY}, nor after TO", file=sys.stderr)
        return 2
    try:
        with options.kept.open("a+", encoding="ascii") as kept:
            print(digits_of(_offsets(list(days_between(options.first, options.last)), kept, options.processes)))
    except (OSError, ValueError) as error:
        print(f"klondike daily: {options.kept}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m solisync.klondike daily",
        description="Find the offsets of days, so that their deals can be won, and print their digits on one line.",
        epilog="A line of daily.txt is FROM, a space, and that output.",
    )
    parser.add_argument("first", metavar="FROM", type=_day, help="the first day, such as 2032-01-01")
    parser.add_argument("last", metavar="TO", type=_day, help="the last day")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: as many as there are cores")
    parser.add_argument(
        "--kept",
        type=Path,
        metavar="FILE",
        default=Path(os.devnull),
        help="store each day in FILE, and don't search again for days that it has, so that the command can be repeated",
    )
    return parser


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a day: {text!r}") from None


def _offsets(days: list[date], kept: TextIO, processes: int) -> list[int]:
    """The offsets of days: those that a file has, and all others, which are found and added to the file."""
    kept.seek(0)
    lines, _, torn = kept.read().rpartition("\n")
    if torn:
        kept.truncate(len(lines) + 1 if lines else 0)
    offsets = read_offsets(lines)
    missing = [day for day in days if day not in offsets]
    taken = {daily_seed(day) for day in OFFSETS if day < days[0]} | {seed_at(*each) for each in offsets.items()}
    with Pool(max(1, processes), signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        for choice in _reported(_choices(missing, taken, scores_from(pool)), len(missing)):
            offsets[choice.day] = choice.offset
            print(choice.day, digits_of([choice.offset]), file=kept, flush=True)
    return [offsets[day] for day in days]


def _choices(days: list[date], taken: set[int], score_of: Scores) -> Iterator[Choice]:
    for day in days:
        choice = choose(day, taken, score_of)
        taken.add(seed_at(day, choice.offset))
        yield choice


def _reported(choices: Iterator[Choice], expected: int) -> Iterator[Choice]:
    """Report progress on standard error, and the totals at the end."""
    began = reported = time.monotonic()
    done: list[Choice] = []
    for choice in choices:
        done.append(choice)
        yield choice
        if (now := time.monotonic()) - reported > _REPORT_SECONDS:
            reported = now
            print(f"{choice.day}: {len(done)} of {expected} days", file=sys.stderr)
    if done:
        seconds = (time.monotonic() - began) / len(done)
        numbers = Counter(choice.offset for choice in done)
        print(
            f"{len(done)} days, {seconds:.3f} seconds each; days by offset: {dict(sorted(numbers.items()))}",
            f"deals passed over: {sum(choice.not_won for choice in done)} without a win in both draw modes,"
            f" {sum(choice.score_too_low for choice in done)} below the score of the day,"
            f" {sum(choice.taken for choice in done)} of earlier days",
            sep="\n",
            file=sys.stderr,
        )
