"""The merge of two devices' progress (docs/sync.md "How fields merge")."""

import json
from datetime import UTC, date, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from solisync.rules.documents import default_document, read_stored, read_unknown
from solisync.rules.merge import PROGRESS, STATS, level, merge
from solisync.rules.sync import (
    HISTORY_DAYS,
    NO_UNKNOWN_FIELDS,
    Document,
    Payload,
    Progress,
    Stats,
)
from tests.harness import strategies
from tests.harness.payloads import NOW, U32, U64, encode
from tests.harness.strategies import costly, payloads
from tests.rules.documents import document, example

MAXIMA = [
    "games_won",
    "games_played",
    "win_streak_best",
    "win_streak_current",
    "best_single_score",
    "lifetime_score",
    "classic_best_score",
    "zen_best_score",
    "challenge_best_score",
]
MANY = costly(100)
# where only one side can be kept, and the rule says "pushed"
PUSHED_WINS = {"avg_time_seconds", "draw_one_wins", "draw_three_wins"}


documents = payloads.map(document)


def plain(merged):
    return json.loads(merged.encode())


def push(*pushed):
    """Return the state after these pushes, one after the other."""
    state = None
    for each in pushed:
        state, _ = merge(each, state, NOW)
    return state


def test_each_field_has_a_rule():
    """A field that the merge doesn't name would be lost."""
    for rules, shape in ((STATS, Stats), (PROGRESS, Progress)):
        assert [*rules] == [field.name for field in structs.fields(shape)]


@pytest.mark.parametrize(
    ("part", "name"), [*(("stats", name) for name in STATS), *(("progress", name) for name in PROGRESS)]
)
def test_each_field_survives_a_first_and_a_repeated_push(part, name):
    """A field that differs from its default is kept, whether it was stored before or not."""
    default = default_document("ann", NOW).payload
    values = {int: 7, list: [9], dict: {"win_5": 2}, str: "2026-W47", date: date(2026, 11, 20), datetime: NOW}
    stats = structs.replace(default.stats, games_played=9, games_won=7, games_lost=2)
    progress = structs.replace(default.progress, weekly_goal_week_iso="2026-W46")
    payload = structs.replace(default, stats=stats, progress=progress)
    before = getattr(payload, part)
    kind = {"daily_challenge_last_completed": date}.get(name, type(getattr(before, name)))
    value = [date(2026, 11, 20)] if name == "daily_challenge_history" else values[kind]
    changes = {
        "games_lost": {"games_lost": 3, "games_played": 10},
        "games_played": {"games_lost": 3, "games_played": 10},
        "level": {"level": 1, "total_xp": 500},
        "daily_challenge_streak": {"daily_challenge_streak": 7, "daily_challenge_longest_streak": 7},
    }.get(name, {name: value})
    after = structs.replace(before, **changes)
    pushed = Document(structs.replace(payload, **{part: after}), NO_UNKNOWN_FIELDS)
    for stored in (None, pushed):
        merged, _ = merge(pushed, stored, NOW)
        for each, its in changes.items():
            assert getattr(getattr(merged.payload, part), each) == its


@MANY
@given(documents, documents)
def test_repeated_push_changes_nothing(first, second):
    """Merging is idempotent: only the time of the merge changes."""
    state = push(first, second)
    again, conflicts = merge(state, state, NOW)
    assert plain(again) == plain(state)
    assert conflicts == []


@MANY
@given(documents, documents)
def test_bests_and_unlocks_are_never_lost(first, second):
    """Bests, unlocks, achievements and dates of both sides are in the result."""
    before, merged = [first.payload, second.payload], push(first, second).payload
    for name in MAXIMA:
        assert getattr(merged.stats, name) >= max(getattr(side.stats, name) for side in before), name
    assert merged.stats.fastest_win_seconds == min(side.stats.fastest_win_seconds for side in before)
    for name in ("classic", "zen", "challenge"):
        times = [getattr(side.stats, f"{name}_fastest_win_seconds") for side in before]
        best = min((seconds for seconds in times if seconds), default=0)
        assert getattr(merged.stats, f"{name}_fastest_win_seconds") == best
    for name in ["total_xp", "daily_challenge_streak", "daily_challenge_longest_streak", "challenge_index"]:
        assert getattr(merged.progress, name) >= max(getattr(side.progress, name) for side in before), name
    for name in ("unlocked_card_backs", "unlocked_backgrounds"):
        everything = {number for side in before for number in getattr(side.progress, name)}
        assert getattr(merged.progress, name) == sorted(everything)
    unlocked = {record.id for side in before for record in side.achievements if record.unlocked}
    assert unlocked == {record.id for record in merged.achievements if record.unlocked}
    assert [record.id for record in merged.achievements] == sorted(
        {record.id for side in before for record in side.achievements}
    )
    days = {day for side in before for day in side.progress.daily_challenge_history}
    assert merged.progress.daily_challenge_history == sorted(days)[-HISTORY_DAYS:]


@MANY
@given(documents, documents)
def test_won_and_lost_games_never_exceed_played_games(first, second):
    stats = push(first, second).payload.stats
    assert stats.games_won + stats.games_lost == stats.games_played
    assert stats.avg_time_seconds == 0 or stats.games_won


@MANY
@given(documents, documents)
def test_order_of_pushes_matters_only_where_the_pushed_side_wins(first, second):
    """The exceptions are ties, achievements that both sides have locked, and unknown fields."""
    one, other = push(first, second).payload, push(second, first).payload
    for name in one.stats.__struct_fields__:
        tie = first.payload.stats.games_won == second.payload.stats.games_won
        if not (tie and name in PUSHED_WINS):
            assert getattr(one.stats, name) == getattr(other.stats, name), name
    assert one.progress == other.progress
    for mine, theirs in zip(one.achievements, other.achievements, strict=True):
        assert mine.id == theirs.id
        assert mine == theirs or not mine.unlocked


@MANY
@given(st.lists(documents, min_size=1, max_size=4))
def test_unknown_fields_survive_any_number_of_pushes(pushed):
    """The value that was pushed last is kept."""
    merged = plain(push(*pushed))
    for each in pushed:
        raw = plain(each)
        for name in set(raw) - set(Payload.__struct_fields__):
            last = [plain(other)[name] for other in pushed if name in plain(other)][-1]
            assert merged[name] == last
        for part in ("stats", "progress"):
            for name in (name for name in raw[part] if name.startswith("zz_")):
                last = [plain(other)[part][name] for other in pushed if name in plain(other)[part]][-1]
                assert merged[part][name] == last


@MANY
@given(documents)
def test_first_push_keeps_its_times_and_has_no_conflicts(first):
    """A first push is merged with itself."""
    merged, conflicts = merge(first, None, NOW)
    assert conflicts == []
    assert merged.payload.stats.last_modified == first.payload.stats.last_modified
    assert merged.payload.progress.last_modified == first.payload.progress.last_modified
    assert merged.payload.last_modified == NOW


@MANY
@given(documents)
def test_stored_document_is_read_back_unchanged(first):
    state = push(first)
    assert plain(read_stored(state.encode())) == plain(state)
    assert structs.asdict(read_stored(state.encode()).payload.stats) == structs.asdict(state.payload.stats)


@pytest.mark.parametrize(
    ("xp", "expected"),
    [(0, 0), (499, 0), (500, 1), (4_999, 9), (5_000, 10), (5_999, 10), (6_000, 11), (U64, U32)],
)
def test_level_follows_from_experience(xp, expected):
    """Each level needs 500 up to level 10, and 1,000 above, up to the limit of a client's u32."""
    assert level(xp) == expected


def test_level_reaches_its_cap_exactly():
    assert level(5_000 + (U32 - 10) * 1_000) == U32
    assert level(5_000 + (U32 - 10) * 1_000 - 1) == U32 - 1


def test_differing_streaks_are_conflicts_as_text():
    """Local is the pushed streak, remote the stored one; the higher streak stays."""
    stored = example(stats__win_streak_current=3, progress__daily_challenge_streak=9)
    pushed = example(stats__win_streak_current=5, progress__daily_challenge_streak=2)
    merged, conflicts = merge(pushed, stored, NOW)
    assert [tuple(msgspec.structs.astuple(conflict)) for conflict in conflicts] == [
        ("win_streak_current", "5", "3"),
        ("daily_challenge_streak", "2", "9"),
    ]
    assert (merged.payload.stats.win_streak_current, merged.payload.progress.daily_challenge_streak) == (5, 9)
    assert merged.payload.progress.daily_challenge_longest_streak == 9


def test_averages_follow_the_side_with_more_wins():
    """Averages and wins by draw mode come from the same side, and on a tie from the pushed one."""
    stored = example(stats__games_won=5, stats__avg_time_seconds=100, stats__draw_one_wins=4, stats__draw_three_wins=1)
    fewer = example(stats__games_won=4, stats__avg_time_seconds=50, stats__draw_one_wins=9, stats__draw_three_wins=9)
    tie = example(stats__games_won=5, stats__avg_time_seconds=70, stats__draw_one_wins=3, stats__draw_three_wins=2)
    for pushed, expected in ((fewer, (100, 4, 1)), (tie, (70, 3, 2))):
        stats = merge(pushed, stored, NOW)[0].payload.stats
        assert (stats.avg_time_seconds, stats.draw_one_wins, stats.draw_three_wins) == expected


def test_later_week_brings_its_goals():
    """Goals belong to one week. In the same week, each goal keeps its higher count."""
    old = example(progress__weekly_goal_week_iso="2026-W16", progress__weekly_goal_progress={"a": 9, "b": 1})
    new = example(progress__weekly_goal_week_iso="2026-W17", progress__weekly_goal_progress={"a": 1})
    same = example(progress__weekly_goal_week_iso="2026-W17", progress__weekly_goal_progress={"a": 0, "c": 2})
    none = example(progress__weekly_goal_week_iso=None, progress__weekly_goal_progress={"z": 1})
    for sides, expected in (
        ((old, new), ("2026-W17", {"a": 1})),
        ((new, old), ("2026-W17", {"a": 1})),
        ((new, same), ("2026-W17", {"a": 1, "c": 2})),
        ((none, old), ("2026-W16", {"a": 9, "b": 1})),
    ):
        merged = push(*sides).payload.progress
        assert (merged.weekly_goal_week_iso, merged.weekly_goal_progress) == expected


def achievement(unlocked, date=None, granted=False, **more):
    return {"id": "a", "unlocked": unlocked, "unlock_date": date, "reward_granted": granted, **more}


@pytest.mark.parametrize(
    ("stored", "pushed", "expected"),
    [
        ((True, "2026-01-02T00:00:00Z", False), (False, None, True), (True, "2026-01-02T00:00:00Z", False)),
        ((False, None, True), (True, None, False), (True, None, False)),
        (
            (True, "2026-01-02T00:00:00Z", True),
            (True, "2026-01-01T00:00:00Z", False),
            (True, "2026-01-01T00:00:00Z", True),
        ),
        ((True, None, False), (True, "2026-01-01T00:00:00Z", False), (True, "2026-01-01T00:00:00Z", False)),
        ((False, None, True), (False, "2026-01-01T00:00:00Z", False), (False, "2026-01-01T00:00:00Z", False)),
    ],
)
def test_unlocked_achievement_stays_unlocked(stored, pushed, expected):
    """If both sides unlocked it, the earlier date and any reward stay. If neither did, the pushed one stays."""
    merged = push(example(achievements=[achievement(*stored)]), example(achievements=[achievement(*pushed)]))
    assert plain(merged)["achievements"] == [achievement(*expected)]


def test_doubled_achievements_of_one_push_are_merged():
    """Their unknown fields are merged too."""
    pushed = example(achievements=[achievement(True, new=1), achievement(False, other=[2])])
    assert plain(push(pushed))["achievements"] == [achievement(True, new=1, other=[2])]


def test_equal_lists_are_sorted_without_doubles():
    """Lists that both sides share are treated like any others."""
    days = ["2026-01-03", "2026-01-01", "2026-01-03"]
    achievements = [
        {"id": name, "unlocked": unlocked, "unlock_date": None, "reward_granted": False}
        for name, unlocked in (("b", False), ("a", True), ("b", True))
    ]
    side = example(
        achievements=achievements, progress__daily_challenge_history=days, progress__unlocked_card_backs=[2, 0, 2]
    )
    merged = plain(merge(side, side, NOW)[0])
    assert [(each["id"], each["unlocked"]) for each in merged["achievements"]] == [("a", True), ("b", True)]
    assert merged["progress"]["daily_challenge_history"] == ["2026-01-01", "2026-01-03"]
    assert merged["progress"]["unlocked_card_backs"] == [0, 2]


def test_history_keeps_the_newest_365_days():
    """Older dates are dropped."""
    days = [f"{year}-{month:02d}-{day:02d}" for year in (2024, 2025) for month in range(1, 13) for day in range(1, 29)]
    merged = push(example(progress__daily_challenge_history=days[::-1] + days))
    assert plain(merged)["progress"]["daily_challenge_history"] == days[-HISTORY_DAYS:]


def test_stored_value_that_no_longer_fits_counts_as_absent():
    """An older server kept any unknown field. The rest of the document isn't lost."""
    stored = plain(example(stats__games_won=7, progress__total_xp=600))
    stored["stats"]["zen_best_score"] = "many"
    stored["stats"]["classic_fastest_win_seconds"] = 2**70
    stored["progress"]["challenge_index"] = -1
    stored["progress"]["daily_challenge_history"] = ["yesterday"]
    stored["zz_new"] = {"kept": 1e300}
    stored["achievements"] = [achievement(True, zz=1)]
    read = read_stored(encode(stored))
    stats, gone = read.payload.stats, read.payload.progress
    assert (stats.games_won, stats.zen_best_score, stats.classic_fastest_win_seconds) == (7, 0, 0)
    assert (gone.total_xp, gone.challenge_index, gone.daily_challenge_history) == (600, 0, [])
    assert plain(read)["zz_new"] == {"kept": 1e300}
    assert plain(read)["achievements"] == [achievement(True, zz=1)]


@pytest.mark.parametrize(
    "spelling", ["1E400", "-0.0", "123456789012345678901234567890", '"\\u0000"', '{"a": [ 1.50 ]}']
)
def test_unknown_values_keep_their_spelling(spelling):
    """Numbers beyond any type and escapes that no column holds stay as they were written."""
    raw = f'{{"zz": {spelling}, '.encode() + encode(plain(example()))[1:]
    first = Document(msgspec.json.decode(raw, type=Payload), read_unknown(raw))
    assert f'"zz":{spelling.replace(" ", "")}'.encode() in push(first, first).encode().replace(b" ", b"")


@given(strategies.times())
def test_times_are_returned_in_utc(text):
    """Any offset and up to nine digits are accepted; the result is exact to the microsecond."""
    shown = plain(example(last_modified=text))["last_modified"]
    assert shown.endswith("Z")
    parsed = datetime.fromisoformat(text[:19] + text[19:].lstrip(".0123456789"))
    assert abs(datetime.fromisoformat(shown) - parsed.astimezone(UTC)).total_seconds() <= 1


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+02:00", "9999-12-31T23:59:59-01:00", "2026-01-01T00:00:00", "x"])
def test_times_outside_of_the_years_are_refused(text):
    """A time needs an offset and lies in the years 1 to 9999 in UTC."""
    with pytest.raises(msgspec.ValidationError):
        example(last_modified=text)
