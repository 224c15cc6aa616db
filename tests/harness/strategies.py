"""Hypothesis strategies for progress that a client may push, and examples of any strategy as a list."""

from datetime import UTC, date, datetime, timedelta, timezone

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.payloads import NIL, U32, U64

# The characters that UTF-8 can encode. With codec="utf-8", as in `st.text()`, each process would take three seconds to
# work these out.
CHARACTERS = st.characters(exclude_categories=["Cs"])


def texts(**sizes):
    """Any text that UTF-8 can encode."""
    return st.text(CHARACTERS, **sizes)


text = texts(max_size=12)
keys = texts(min_size=1, max_size=64)
u32 = st.integers(0, 9) | st.integers(0, U32) | st.sampled_from([U32, U32 - 1])
u64 = st.integers(0, 9) | st.integers(0, U64) | st.sampled_from([U64, U64 - 1, 2**63])
dates = st.dates(date(1, 1, 1), date(9999, 12, 31)).map(date.isoformat)


@st.composite
def times(draw):
    """RFC 3339 times with any offset and up to nine decimals of a second."""
    offset = timedelta(minutes=draw(st.integers(-14 * 60, 14 * 60)))
    moment = draw(st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC)))
    written = moment.astimezone(timezone(offset)).replace(microsecond=0, tzinfo=None).isoformat()
    digits = draw(st.integers(0, 9))
    fraction = f".{draw(st.integers(0, 10**digits - 1)):0{digits}d}" if digits else ""
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    zone = f"{'-' if offset < timedelta() else '+'}{hours:02d}:{minutes:02d}" if offset else "Z"
    return written + fraction + zone


unknown = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
unknowns = st.dictionaries(st.sampled_from(["zz_new", "zz_\0", "zz_😀", "zz_é"]), unknown, max_size=2)


def records(required, optional=None):
    """Objects with all required fields, some optional ones, and perhaps some that the server doesn't know."""
    return st.tuples(st.fixed_dictionaries(required, optional=optional or {}), unknowns).map(
        lambda pair: {**pair[1], **pair[0]}
    )


stats = records(
    {
        **dict.fromkeys(
            [
                "games_played",
                "games_won",
                "games_lost",
                "win_streak_current",
                "win_streak_best",
                "best_single_score",
                "draw_one_wins",
                "draw_three_wins",
            ],
            u32,
        ),
        **dict.fromkeys(["avg_time_seconds", "fastest_win_seconds", "lifetime_score"], u64),
        "last_modified": times(),
    },
    {
        **dict.fromkeys(["classic_best_score", "zen_best_score", "challenge_best_score"], u32),
        **dict.fromkeys(
            ["classic_fastest_win_seconds", "zen_fastest_win_seconds", "challenge_fastest_win_seconds"], u64
        ),
    },
)
achievements = st.lists(
    records(
        {
            "id": st.sampled_from(["first_win", "streak", "😀" * 64]) | keys,
            "unlocked": st.booleans(),
            "unlock_date": st.none() | times(),
            "reward_granted": st.booleans(),
        }
    ),
    max_size=4,
)
progress = records(
    {
        "total_xp": u64 | st.integers(0, 20_000),
        "level": u32,
        "daily_challenge_last_completed": st.none() | dates,
        "daily_challenge_streak": u32,
        "weekly_goal_progress": st.dictionaries(keys, u32, max_size=3),
        "unlocked_card_backs": st.lists(u32, max_size=4),
        "unlocked_backgrounds": st.lists(u32, max_size=4),
        "last_modified": times(),
    },
    {
        "daily_challenge_longest_streak": u32,
        "daily_challenge_history": st.lists(dates, max_size=4),
        "weekly_goal_week_iso": st.none() | st.sampled_from(["2026-W09", "2026-W17", "2026-W18"]) | text,
        "challenge_index": u32,
    },
)
payloads = records(
    {
        "user_id": st.just(NIL),
        "stats": stats,
        "achievements": achievements,
        "progress": progress,
        "last_modified": times(),
    }
)


def costly(count):
    """Settings for a test with expensive examples: a third of them, or all with --fire."""
    return settings(max_examples=count if settings.get_current_profile_name() == "full" else count // 3)


def examples(strategy, count):
    """At least `count` examples of a strategy, the same in every run, for tests that send several at the same time."""
    collected = []

    @settings(max_examples=count, database=None, derandomize=True, suppress_health_check=[*HealthCheck])
    @given(strategy)
    def collect(example):
        collected.append(example)

    collect()
    return collected
