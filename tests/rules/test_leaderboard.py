"""Names and bests on the leaderboard (docs/protocol.md "The leaderboard")."""

import pytest

from solisync.errors import BadRequest
from solisync.rules.leaderboard import NO_BESTS, Bests, Standing, bests_of, check_display_name
from tests.harness.payloads import U32, U64
from tests.rules.documents import example

I32 = 2**31 - 1


@pytest.mark.parametrize("name", ["A", " A ", "x" * 32, "😀" * 32, "Ann the Älder", "名前", "👩\u200d🚀", "\u200ba"])
def test_name_has_up_to_32_code_points(name):
    """Names of any script are trimmed and counted in code points."""
    assert check_display_name(name) == name.strip()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "display_name must not be empty"),
        (" \t\n ", "display_name must not be empty"),
        ("\u200b", "display_name must not be empty"),
        ("\u2800 \u3164", "display_name must not be empty"),
        ("\u2060" * 40, "display_name must not be empty"),
        ("\ufe0f\U000e0041", "display_name must not be empty"),
        ("\u0301 \u20dd\ufff9\U0001d159", "display_name must not be empty"),
        ("x" * 33, "display_name must be at most 32 characters"),
        ("😀" * 33, "display_name must be at most 32 characters"),
        ("a\0b", "display_name must not contain control characters"),
        ("a\nb", "display_name must not contain control characters"),
        ("a\x85b", "display_name must not contain control characters"),
        ("a\u202eb", "display_name must not contain control characters"),
        ("a\u2066b", "display_name must not contain control characters"),
        ("a\u200fb", "display_name must not contain control characters"),
        ("\ud800", "display_name must not contain control characters"),
    ],
)
def test_invalid_name_is_refused(name, message):
    """The name is empty, too long, or able to disturb how other names are shown."""
    with pytest.raises(BadRequest, match=message):
        check_display_name(name)


@pytest.mark.parametrize(
    ("score", "seconds", "expected"),
    [
        (0, U64, (None, None)),
        (0, 0, (None, None)),
        (1, 1, (1, 1)),
        (I32, I32, (I32, I32)),
        (I32 + 1, I32 + 1, (I32, None)),
        (U32, U64 - 1, (I32, None)),
    ],
)
def test_scores_are_capped_and_unusable_bests_ignored(score, seconds, expected):
    """No score and no time don't count. Scores end where a client's i32 does; longer times don't count."""
    stats = example(stats__best_single_score=score, stats__fastest_win_seconds=seconds).payload.stats
    assert tuple(bests_of(stats)) == expected


@pytest.mark.parametrize(
    ("entry", "bests", "improved"),
    [
        (Standing(None, None, None), Bests(9, 9), False),
        (Standing(True, None, None), Bests(9, None), True),
        (Standing(True, None, None), Bests(None, 9), True),
        (Standing(True, None, None), NO_BESTS, False),
        (Standing(True, 9, 9), Bests(9, 9), False),
        (Standing(True, 9, 9), Bests(8, 10), False),
        (Standing(True, 9, 9), Bests(10, 10), True),
        (Standing(True, 9, 9), Bests(8, 8), True),
        (Standing(False, 9, 9), Bests(8, 8), True),
        (Standing(True, 9, 9), NO_BESTS, False),
    ],
)
def test_higher_score_or_shorter_time_improves_an_entry(entry, bests, improved):
    """An entry must exist to improve."""
    assert entry.improved_by(bests) is improved
