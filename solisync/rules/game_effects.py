"""The effect of finished games on progress: docs/sync.md "What a game adds".

New games are added to the stored progress in the order of their ends, so that the sums don't depend on the order in
which they arrive. The time of all wins is kept beside the progress, whose average has whole seconds: an average of
averages would sink with each game.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import structs

from ..klondike.daily import FIRST_DAY, daily_seed
from .challenge import daily_challenge
from .games import ReceivedGame, Share
from .merge import level, week_of
from .shapes import U32_MAX, U64_MAX
from .sync import HISTORY_DAYS, Document

DAY_HOURS = 36  # from the start of a day, in UTC: its board and its goal count wins that ended in this time

_FAST_SECONDS, _FAST_MOST, _FAST_LEAST = 120, 50, 10
_XP_OF_WIN, _XP_WITHOUT_UNDO, _XP_OF_DAY, _XP_OF_WEEK = 50, 25, 100, 75
_TIME_BONUS = 700_000  # points of a win in one second, for the goals of days before FIRST_DAY

_RECORDS = {
    mode: (f"{mode.lower()}_best_score", f"{mode.lower()}_fastest_win_seconds")
    for mode in ("Classic", "Zen", "Challenge")
}
_COUNTS = ("games_played", "games_won", "games_lost", "draw_one_wins", "draw_three_wins")
_STREAKS = ("win_streak_current", "win_streak_best")
_MOST = dict.fromkeys(_COUNTS + _STREAKS, U32_MAX) | {"lifetime_score": U64_MAX}


class Added(NamedTuple):
    """A document with new games, what each has added, and the seconds of all wins."""

    document: Document
    shares: list[Share]
    win_seconds: int


def with_games(
    document: Document,
    games: Iterable[ReceivedGame],
    latest: datetime | None,
    now: datetime,
    win_seconds: int | None = None,
) -> Added:
    """Add games to a document; `latest` is the end of the latest game counted before.

    `now` is the database's time. A later end counts as now, and its date decides which days have begun. `win_seconds`
    is the time of the document's wins as it was kept, which holds unless another change has moved their average.
    """
    payload = document.payload
    stats, progress = structs.asdict(payload.stats), structs.asdict(payload.progress)
    progress["weekly_goal_progress"] = {**payload.progress.weekly_goal_progress}
    won, average = stats["games_won"], stats["avg_time_seconds"]
    time = win_seconds if won and win_seconds is not None and win_seconds // won == average else won * average
    shares = []
    for game in (_not_after(now, game) for game in sorted(games, key=attrgetter("ended_at"))):
        in_order = latest is None or game.ended_at >= latest
        before = progress["total_xp"]
        _count(stats, game, in_order=in_order)
        if game.won:
            time += game.seconds
            _reward(progress, game)
            _win_day(progress, game, now.date())
            _meet_weekly(progress, game)
        progress["total_xp"] = min(progress["total_xp"], U64_MAX)
        shares.append(Share(game, progress["total_xp"] - before))
        latest = game.ended_at if in_order else latest
    progress["level"] = level(progress["total_xp"])
    stats["last_modified"] = progress["last_modified"] = now
    changed = structs.replace(
        payload,
        stats=structs.replace(payload.stats, **_completed(stats, time)),
        progress=structs.replace(payload.progress, **progress),
        last_modified=now,
    )
    return Added(document._replace(payload=changed), shares, time)


def with_shares(document: Document, shares: Iterable[Share], now: datetime) -> Document:
    """A document with the counts, bests and experience that games have added to another; streaks and days stay."""
    payload = document.payload
    stats, xp = structs.asdict(payload.stats), payload.progress.total_xp
    time = stats["games_won"] * stats["avg_time_seconds"]
    for game, game_xp in shares:
        _count(stats, game, in_order=False)
        time += game.seconds if game.won else 0
        xp = min(xp + game_xp, U64_MAX)
    stats["last_modified"] = now
    progress = structs.replace(payload.progress, total_xp=xp, level=level(xp), last_modified=now)
    changed = structs.replace(
        payload, stats=structs.replace(payload.stats, **_completed(stats, time)), progress=progress
    )
    return document._replace(payload=changed)


def _not_after(now: datetime, game: ReceivedGame) -> ReceivedGame:
    return game if game.ended_at <= now else game._replace(ended_at=now.astimezone(game.ended_at.tzinfo))


def _count(stats: dict[str, Any], game: ReceivedGame, *, in_order: bool) -> None:
    """Add a game to the statistics; without `in_order`, it ended before the latest game, and changes no streak."""
    stats["games_played"] += 1
    if not game.won:
        stats["games_lost"] += 1
        if in_order:
            stats["win_streak_current"] = 0
        return
    score, seconds = game.score, game.seconds
    stats["games_won"] += 1
    stats["lifetime_score"] += score
    stats["draw_one_wins" if game.draw_mode == "DrawOne" else "draw_three_wins"] += 1
    if in_order:
        stats["win_streak_current"] += 1
        if stats["win_streak_current"] > stats["win_streak_best"]:
            stats["win_streak_best"] = stats["win_streak_current"]
    best_score, best_time = _RECORDS.get(game.mode, (None, None))
    for name in ("best_single_score", best_score):
        if name is not None and score > stats[name]:
            stats[name] = score
    for name in ("fastest_win_seconds", best_time):
        if name is not None and seconds and (seconds < stats[name] or not stats[name]):  # 0 means never
            stats[name] = seconds


def _completed(stats: dict[str, Any], time: int) -> dict[str, Any]:
    """The statistics with the average of the wins' `time`, and each sum at most at the bound of its type."""
    if stats["games_won"]:
        stats["avg_time_seconds"] = time // stats["games_won"]
    return stats | {name: min(stats[name], most) for name, most in _MOST.items()}


def _reward(progress: dict[str, Any], game: ReceivedGame) -> None:
    fast = max(_FAST_LEAST, _FAST_MOST - 40 * game.seconds // _FAST_SECONDS) if game.seconds < _FAST_SECONDS else 0
    progress["total_xp"] += _XP_OF_WIN + fast + (0 if game.undone else _XP_WITHOUT_UNDO)


def _win_day(progress: dict[str, Any], game: ReceivedGame, today: date) -> None:
    """Enter a win of a day's deal: in the day's time into its history, and later as won later."""
    day = None if game.mode == "Zen" else _day_of(game, today)
    if day is None:
        return
    if not _in_time(day, game.ended_at):
        if day not in progress["daily_won_later"]:
            progress["daily_won_later"] = sorted((*progress["daily_won_later"], day))[-HISTORY_DAYS:]
        return
    history = sorted({*progress["daily_challenge_history"], day})[-HISTORY_DAYS:]
    if day in progress["daily_challenge_history"] or day not in history:
        return
    progress["daily_challenge_history"] = history
    last: date | None = progress["daily_challenge_last_completed"]
    streak = progress["daily_challenge_streak"]
    if _meets_goal(day, game) and day != last:
        progress["total_xp"] += _XP_OF_DAY
    if last is None or day > last:
        streak = streak + 1 if last is not None and day.toordinal() == last.toordinal() + 1 else 1
        progress["daily_challenge_last_completed"] = last = day
    streak = min(max(streak, _run(history, last)), U32_MAX)
    progress["daily_challenge_streak"] = streak
    progress["daily_challenge_longest_streak"] = max(
        progress["daily_challenge_longest_streak"], streak, _run(history, _end_of_run(history, day))
    )


def _day_of(game: ReceivedGame, today: date) -> date | None:
    """The day whose deal a game was: of the last HISTORY_DAYS, or of the day on which it ended, or the day before."""
    if game.seed is None:
        return None
    day = _days_by_seed(today).get(game.seed)
    if day is not None:
        return day
    ended = game.ended_at.astimezone(UTC).date().toordinal()
    days = (date.fromordinal(each) for each in (ended, ended - 1) if each)
    return next((day for day in days if daily_seed(day) == game.seed), None)


@lru_cache(2)
def _days_by_seed(today: date) -> dict[int, date]:
    return {daily_seed(day): day for day in (today - timedelta(days) for days in range(HISTORY_DAYS))}


def _in_time(day: date, ended_at: datetime) -> bool:
    return ended_at < datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=DAY_HOURS)


def _run(days: list[date], last: date) -> int:
    """The number of consecutive days that end with `last`."""
    known, end = {day.toordinal() for day in days}, last.toordinal()
    return next(length for length in count() if end - length not in known)


def _end_of_run(days: list[date], day: date) -> date:
    """The last of the consecutive days that contain `day`."""
    known = {each.toordinal() for each in days}
    return date.fromordinal(next(number for number in count(day.toordinal()) if number + 1 not in known))


def _meets_goal(day: date, game: ReceivedGame) -> bool:
    challenge = daily_challenge(day)
    if challenge.max_time_secs is not None:
        return game.seconds <= challenge.max_time_secs
    bonus = _TIME_BONUS // max(1, game.seconds) if day < FIRST_DAY else 0
    return challenge.target_score is None or game.score + bonus >= challenge.target_score


# The goals of a week: name, number of wins, and which wins count.
_WEEKLY: tuple[tuple[str, int, Callable[[ReceivedGame], bool]], ...] = (
    ("weekly_5_wins", 5, lambda game: True),
    ("weekly_3_no_undo", 3, lambda game: not game.undone),
    ("weekly_3_fast", 3, lambda game: game.seconds < 180),
    ("weekly_1_under_five", 1, lambda game: game.seconds < 300),
    ("weekly_draw_three", 1, lambda game: game.draw_mode == "DrawThree"),
)


def _meet_weekly(progress: dict[str, Any], game: ReceivedGame) -> None:
    week, known = week_of(game.ended_at.date()), progress["weekly_goal_week_iso"] or ""
    if week < known:
        return
    if week > known:
        progress["weekly_goal_week_iso"], progress["weekly_goal_progress"] = week, {}
    goals = progress["weekly_goal_progress"]
    for name, times, counts in _WEEKLY:
        done = goals.get(name, 0)
        if done < times and counts(game):
            goals[name] = done + 1
            if done + 1 == times:
                progress["total_xp"] += _XP_OF_WEEK
