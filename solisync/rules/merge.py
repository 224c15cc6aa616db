"""Merging a pushed document with the stored one, field by field (docs/sync.md "How fields merge").

Merging never lowers a best, and never loses an unlock, an achievement or a date within the newest HISTORY_DAYS.
"""

from collections.abc import Callable
from datetime import date, datetime
from functools import lru_cache
from itertools import chain
from operator import attrgetter, lt
from typing import Any

from msgspec import structs

from .shapes import U32_MAX
from .sync import (
    HISTORY_DAYS,
    NO_UNKNOWN_FIELDS,
    Achievement,
    Document,
    Payload,
    Progress,
    Stats,
    SyncConflict,
    Unknown,
    UnknownFields,
)

Rule = Callable[[Any, Any], Any]


def _faster(pushed: int, stored: int) -> int:
    return min(pushed, stored) or max(pushed, stored)  # 0 means never


def _later(pushed: date | None, stored: date | None) -> date | None:
    return max(filter(None, (pushed, stored)), default=None)


def _union(pushed: list[Any], stored: list[Any]) -> list[Any]:
    # Fast path: a set of two equal lists, which has to be sorted again, see docs/performance.md
    if pushed == stored and _ascends(stored):
        return stored
    return sorted({*pushed, *stored})


def _newest(pushed: list[date], stored: list[date]) -> list[date]:
    return _union(pushed, stored)[-HISTORY_DAYS:]


def _ascends(values: list[Any]) -> bool:
    """Return whether the values are sorted, and no two of them are equal."""
    return all(map(lt, values, values[1:]))


# How each field merges. Fields with None follow from other fields, or are merged together with them: see `_stats` and
# `_progress`.
STATS: dict[str, Rule | None] = {
    "games_played": max,
    "games_won": max,
    "games_lost": None,
    "win_streak_current": max,
    "win_streak_best": max,
    "avg_time_seconds": None,
    "fastest_win_seconds": min,
    "lifetime_score": max,
    "best_single_score": max,
    "draw_one_wins": None,
    "draw_three_wins": None,
    "classic_best_score": max,
    "classic_fastest_win_seconds": _faster,
    "zen_best_score": max,
    "zen_fastest_win_seconds": _faster,
    "challenge_best_score": max,
    "challenge_fastest_win_seconds": _faster,
    "last_modified": None,
}
PROGRESS: dict[str, Rule | None] = {
    "total_xp": max,
    "level": None,
    "daily_challenge_last_completed": _later,
    "daily_challenge_streak": max,
    "daily_challenge_longest_streak": max,
    "daily_challenge_history": _newest,
    "daily_won_later": _newest,
    "weekly_goal_week_iso": None,
    "weekly_goal_progress": None,
    "unlocked_card_backs": _union,
    "unlocked_backgrounds": _union,
    "challenge_index": max,
    "last_modified": None,
}
_STATS_RULES = [(name, rule) for name, rule in STATS.items() if rule is not None]
_PROGRESS_RULES = [(name, rule) for name, rule in PROGRESS.items() if rule is not None]

# The fields that are reported as conflicts if they differ, and their places in a payload.
_REPORTED = {
    "win_streak_current": attrgetter("stats.win_streak_current"),
    "daily_challenge_streak": attrgetter("progress.daily_challenge_streak"),
}
CONFLICT_FIELDS = tuple(_REPORTED)


def merge(
    pushed: Document, stored: Document | None, now: datetime, *, latest: date | None = None, had_all: bool = False
) -> tuple[Document, list[SyncConflict]]:
    """Merge documents; return the result and the conflicts.

    A first push is merged with itself and keeps its `last_modified` times. Pushed days after `latest` count as absent:
    days from a wrong clock would stay in the progress for years. `had_all`: the device had all games of the stored
    document, so its running streaks are the newest.
    """
    new, old = pushed.payload, (stored or pushed).payload
    times = (now, now) if stored else (new.stats.last_modified, new.progress.last_modified)
    progress = _progress(new.progress, old.progress, times[1])
    if latest is not None and _is_after(latest, progress):
        new = structs.replace(new, progress=_up_to(latest, new.progress, stored.payload.progress if stored else None))
        old = stored.payload if stored else new
        progress = _progress(new.progress, old.progress, times[1])
    stats = _stats(new.stats, old.stats, times[0])
    conflicts = _conflicts(new, old)
    if had_all and conflicts:
        stats, progress, conflicts = _with_newest_streaks(new, old, stats, progress, conflicts)
    payload = Payload(
        user_id=new.user_id,
        stats=stats,
        achievements=_achievements(new.achievements, old.achievements),
        progress=progress,
        last_modified=now,
    )
    unknown_fields = _unknown_fields(pushed.unknown_fields, (stored or pushed).unknown_fields)
    return Document(payload, unknown_fields), conflicts


def level(total_xp: int) -> int:
    """The level for this much experience: one for each 500 up to level 10, then one for each 1,000."""
    return min(total_xp // 500 if total_xp < 5_000 else 10 + (total_xp - 5_000) // 1_000, U32_MAX)


def _stats(pushed: Stats, stored: Stats, modified: datetime) -> Stats:
    values = {name: rule(getattr(pushed, name), getattr(stored, name)) for name, rule in _STATS_RULES}
    leader = pushed if pushed.games_won >= stored.games_won else stored
    won = values["games_won"]
    values["games_played"] = max(values["games_played"], won)
    return Stats(
        **values,
        games_lost=values["games_played"] - won,
        avg_time_seconds=leader.avg_time_seconds if won else 0,
        draw_one_wins=leader.draw_one_wins,
        draw_three_wins=leader.draw_three_wins,
        last_modified=modified,
    )


def _achievements(pushed: list[Achievement], stored: list[Achievement]) -> list[Achievement]:
    # Fast path: merging records that are equal, and lists that are, see docs/performance.md
    if pushed == stored and _ascends([record.id for record in stored]):
        return stored
    merged: dict[str, Achievement] = {}
    for record in chain(stored, pushed):
        known = merged.get(record.id)
        merged[record.id] = record if known is None or known == record else _achievement(record, known)
    return [merged[name] for name in sorted(merged)]


def _achievement(pushed: Achievement, stored: Achievement) -> Achievement:
    if not (pushed.unlocked and stored.unlocked):
        return stored if stored.unlocked else pushed
    return structs.replace(
        pushed,
        unlock_date=min(filter(None, (pushed.unlock_date, stored.unlock_date)), default=None),
        reward_granted=pushed.reward_granted or stored.reward_granted,
    )


def _progress(pushed: Progress, stored: Progress, modified: datetime) -> Progress:
    values = {name: rule(getattr(pushed, name), getattr(stored, name)) for name, rule in _PROGRESS_RULES}
    values["daily_challenge_longest_streak"] = max(
        values["daily_challenge_longest_streak"], values["daily_challenge_streak"]
    )
    week, goals = _weekly(pushed, stored)
    return Progress(
        **values,
        level=level(values["total_xp"]),
        weekly_goal_week_iso=week,
        weekly_goal_progress=goals,
        last_modified=modified,
    )


def _weekly(pushed: Progress, stored: Progress) -> tuple[str | None, dict[str, int]]:
    """The later week with its goals; weeks (like 2026-W17) compare as text, and None comes first."""
    if pushed.weekly_goal_week_iso == stored.weekly_goal_week_iso:
        goals = dict(stored.weekly_goal_progress)
        for goal, count in pushed.weekly_goal_progress.items():
            goals[goal] = max(count, goals.get(goal, 0))
        return pushed.weekly_goal_week_iso, goals
    leader = max(pushed, stored, key=lambda side: (side.weekly_goal_week_iso is not None, side.weekly_goal_week_iso))
    return leader.weekly_goal_week_iso, leader.weekly_goal_progress


def _is_after(latest: date, merged: Progress) -> bool:
    """Return whether merged progress has a date after `latest`, or a week after the week of `latest`."""
    completed, week = merged.daily_challenge_last_completed, merged.weekly_goal_week_iso
    return (
        (completed is not None and completed > latest)
        or (week is not None and week > week_of(latest))
        or any(days and days[-1] > latest for days in (merged.daily_challenge_history, merged.daily_won_later))
    )


def _up_to(latest: date, progress: Progress, stored: Progress | None) -> Progress:
    """Remove dates after `latest` from pushed progress; a streak or week of the future becomes the stored one."""
    completed, week = progress.daily_challenge_last_completed, progress.weekly_goal_week_iso
    changes: dict[str, Any] = {
        name: [day for day in getattr(progress, name) if day <= latest]
        for name in ("daily_challenge_history", "daily_won_later")
    }
    if completed is not None and completed > latest:
        changes["daily_challenge_last_completed"] = None
        changes["daily_challenge_streak"] = stored.daily_challenge_streak if stored else 0
    if week is not None and week > week_of(latest):
        changes["weekly_goal_week_iso"], changes["weekly_goal_progress"] = None, {}
    return structs.replace(progress, **changes)


@lru_cache(2)
def week_of(day: date) -> str:
    """The ISO week of a day, like 2026-W17."""
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


def _with_newest_streaks(
    pushed: Payload, stored: Payload, stats: Stats, progress: Progress, conflicts: list[SyncConflict]
) -> tuple[Stats, Progress, list[SyncConflict]]:
    """Merged statistics and progress with the pushed streaks, and the conflicts that remain.

    The streak of daily challenges needs a pushed last day that is not earlier than the stored one.
    """
    new, old = pushed.stats, stored.stats
    best = max(stats.win_streak_best, new.win_streak_current, old.win_streak_current)
    stats = structs.replace(stats, win_streak_current=new.win_streak_current, win_streak_best=best)
    settled = {"win_streak_current"}
    day = pushed.progress.daily_challenge_last_completed
    if day is not None and day == progress.daily_challenge_last_completed:
        progress = structs.replace(progress, daily_challenge_streak=pushed.progress.daily_challenge_streak)
        settled.add("daily_challenge_streak")
    return stats, progress, [conflict for conflict in conflicts if conflict.field not in settled]


def _unknown_fields(pushed: UnknownFields, stored: UnknownFields) -> UnknownFields:
    def union(pushed: Unknown, stored: Unknown) -> Unknown:
        return {**stored, **pushed}

    if not any(pushed) and not any(stored):
        return NO_UNKNOWN_FIELDS
    return UnknownFields(
        payload=union(pushed.payload, stored.payload),
        stats=union(pushed.stats, stored.stats),
        progress=union(pushed.progress, stored.progress),
        achievements={
            name: union(pushed.achievements.get(name, {}), stored.achievements.get(name, {}))
            for name in {**stored.achievements, **pushed.achievements}
        },
    )


def _conflicts(pushed: Payload, stored: Payload) -> list[SyncConflict]:
    pairs = ((field, value_of(pushed), value_of(stored)) for field, value_of in _REPORTED.items())
    return [SyncConflict(field, str(local), str(remote)) for field, local, remote in pairs if local != remote]
