"""How two devices' progress becomes one (contract §7): pure functions of what was pushed, what is stored, and the time.

Merging never lowers a best and never loses an unlock, an achievement or a date within the cap. Where only one of two
values can stay, the rule of its field says whose; "pushed wins" is the last resort, never the first.
"""

from collections.abc import Iterable
from datetime import date, datetime
from itertools import chain

from msgspec import structs

from .fields import U32_MAX
from .sync import HISTORY_DAYS, Achievement, Document, Extras, Payload, Progress, Stats, SyncConflict, Unknown

_MAXIMA = (
    "games_won",
    "win_streak_best",
    "best_single_score",
    "win_streak_current",
    "lifetime_score",
    "classic_best_score",
    "zen_best_score",
    "challenge_best_score",
)
_FASTEST = ("classic_fastest_win_seconds", "zen_fastest_win_seconds", "challenge_fastest_win_seconds")


def merge(pushed: Document, stored: Document | None, now: datetime) -> tuple[Document, list[SyncConflict]]:
    """Merge a push into what is stored; a first push is merged with itself and keeps its own times."""
    base = pushed if stored is None else stored
    mine, theirs = pushed.payload, base.payload
    payload = Payload(
        user_id=mine.user_id,
        stats=_stats(mine.stats, theirs.stats, mine.stats.last_modified if stored is None else now),
        achievements=_achievements(chain(theirs.achievements, mine.achievements)),
        progress=_progress(mine.progress, theirs.progress, mine.progress.last_modified if stored is None else now),
        last_modified=now,
    )
    return Document(payload, _extras(pushed.extras, base.extras)), _conflicts(mine, theirs)


def level(total_xp: int) -> int:
    """The level that this much experience gives: every 500 up to level 10, every 1,000 from there."""
    return min(total_xp // 500 if total_xp < 5_000 else 10 + (total_xp - 5_000) // 1_000, U32_MAX)


def _stats(mine: Stats, theirs: Stats, modified: datetime) -> Stats:
    values = {name: max(getattr(mine, name), getattr(theirs, name)) for name in _MAXIMA}
    for name in _FASTEST:  # 0 means never
        values[name] = min(filter(None, (getattr(mine, name), getattr(theirs, name))), default=0)
    leader = mine if mine.games_won >= theirs.games_won else theirs
    won = values["games_won"]
    played = max(mine.games_played, theirs.games_played, won)
    return Stats(
        **values,
        games_played=played,
        games_lost=played - won,
        avg_time_seconds=leader.avg_time_seconds if won else 0,
        draw_one_wins=leader.draw_one_wins,
        draw_three_wins=leader.draw_three_wins,
        fastest_win_seconds=min(mine.fastest_win_seconds, theirs.fastest_win_seconds),
        last_modified=modified,
    )


def _achievements(records: Iterable[Achievement]) -> list[Achievement]:
    merged: dict[str, Achievement] = {}
    for record in records:
        known = merged.get(record.id)
        # most have not changed since the last push
        merged[record.id] = record if known is None or known == record else _achievement(record, known)
    return [merged[name] for name in sorted(merged)]


def _achievement(mine: Achievement, theirs: Achievement) -> Achievement:
    if not (mine.unlocked and theirs.unlocked):
        return theirs if theirs.unlocked else mine
    return structs.replace(
        mine,
        unlock_date=min(filter(None, (mine.unlock_date, theirs.unlock_date)), default=None),
        reward_granted=mine.reward_granted or theirs.reward_granted,
    )


def _progress(mine: Progress, theirs: Progress, modified: datetime) -> Progress:
    total_xp = max(mine.total_xp, theirs.total_xp)
    streak = max(mine.daily_challenge_streak, theirs.daily_challenge_streak)
    week, goals = _weekly(mine, theirs)
    return Progress(
        total_xp=total_xp,
        level=level(total_xp),
        daily_challenge_last_completed=_later(
            mine.daily_challenge_last_completed, theirs.daily_challenge_last_completed
        ),
        daily_challenge_streak=streak,
        daily_challenge_longest_streak=max(
            mine.daily_challenge_longest_streak, theirs.daily_challenge_longest_streak, streak
        ),
        daily_challenge_history=sorted({*mine.daily_challenge_history, *theirs.daily_challenge_history})[
            -HISTORY_DAYS:
        ],
        weekly_goal_week_iso=week,
        weekly_goal_progress=goals,
        unlocked_card_backs=sorted({*mine.unlocked_card_backs, *theirs.unlocked_card_backs}),
        unlocked_backgrounds=sorted({*mine.unlocked_backgrounds, *theirs.unlocked_backgrounds}),
        challenge_index=max(mine.challenge_index, theirs.challenge_index),
        last_modified=modified,
    )


def _later(mine: date | None, theirs: date | None) -> date | None:
    return max(filter(None, (mine, theirs)), default=None)


def _weekly(mine: Progress, theirs: Progress) -> tuple[str | None, dict[str, int]]:
    """The later week with its goals; weeks like 2026-W17 sort as text, and no week at all is the earliest."""
    if mine.weekly_goal_week_iso == theirs.weekly_goal_week_iso:
        goals = dict(theirs.weekly_goal_progress)
        for goal, count in mine.weekly_goal_progress.items():
            goals[goal] = max(count, goals.get(goal, 0))
        return mine.weekly_goal_week_iso, goals
    leader = max(mine, theirs, key=lambda side: (side.weekly_goal_week_iso is not None, side.weekly_goal_week_iso))
    return leader.weekly_goal_week_iso, leader.weekly_goal_progress


def _extras(mine: Extras, theirs: Extras) -> Extras:
    def union(mine: Unknown, theirs: Unknown) -> Unknown:
        return {**theirs, **mine}

    return Extras(
        payload=union(mine.payload, theirs.payload),
        stats=union(mine.stats, theirs.stats),
        progress=union(mine.progress, theirs.progress),
        achievements={
            name: union(mine.achievements.get(name, {}), theirs.achievements.get(name, {}))
            for name in {**theirs.achievements, **mine.achievements}
        },
    )


def _conflicts(mine: Payload, theirs: Payload) -> list[SyncConflict]:
    pairs = (
        ("win_streak_current", mine.stats.win_streak_current, theirs.stats.win_streak_current),
        (
            "daily_challenge_streak",
            mine.progress.daily_challenge_streak,
            theirs.progress.daily_challenge_streak,
        ),
    )
    return [SyncConflict(field, str(local), str(remote)) for field, local, remote in pairs if local != remote]
