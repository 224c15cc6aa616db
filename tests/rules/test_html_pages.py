"""The heads of pages (docs/pages.md "How a page is made")."""

from datetime import UTC, date, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.klondike import DRAW_MODES, MODES
from solisync.rules.challenge import daily_challenge
from solisync.rules.html_pages import DAILY, STATIC, ReplayData, SharedReplay, day_data, day_head, replay_head
from solisync.rules.replays import NUMBER_MAX, VerdictAnswer

PENDING = VerdictAnswer("pending", *[None] * 6)
VERIFIED = VerdictAnswer(
    status="verified",
    ruleset="2026-05-19",
    undos=0,
    score=650,
    moves=104,
    reason=None,
    checked_at=datetime(2026, 5, 20, tzinfo=UTC),
)


def replay(**fields):
    """Return a replay as its page shows it."""
    ordinary = {
        "id": "0b8f6f0e-6c53-4d0a-9c3e-2f1d8a7b5c41",
        "username": "Ann",
        "avatar_url": None,
        "deal": "18446744073709551615",
        "draw_mode": "DrawThree",
        "mode": "Classic",
        "time_seconds": "251",
        "final_score": "650",
        "recorded_at": "2026-05-19T10:00:00Z",
        "received_at": datetime(2026, 5, 19, 10, tzinfo=UTC),
        "listed": True,
    }
    given = {name: str(value) if name in ("time_seconds", "final_score") else value for name, value in fields.items()}
    numbers = {name: msgspec.Raw((ordinary | given)[name]) for name in ("time_seconds", "final_score")}
    return SharedReplay(**(ordinary | given | numbers))


def title(**fields):
    return replay_head(ReplayData(replay(**fields), PENDING)).title


def description(verdict=PENDING, **fields):
    return replay_head(ReplayData(replay(**fields), verdict)).description


def test_title_shows_the_winner_and_the_result():
    assert title() == "Ann won with 650 points in 4:11, draw three"
    assert title(draw_mode="DrawOne", username="x_1") == "x_1 won with 650 points in 4:11, draw one"


@pytest.mark.parametrize(
    ("spelling", "shown"),
    [
        ("650.0", "650 points"),
        ("6.5e2", "650 points"),
        ("1", "1 point"),
        ("0", "0 points"),
        ("-5", "-5 points"),
        ("0.5", "0.5 points"),
        ("1234.5678", "1,234.568 points"),
        (str(NUMBER_MAX), "9,007,199,254,740,992 points"),
    ],
)
def test_points_are_shown_as_a_plain_number(spelling, shown):
    """Uploads may spell them in any way."""
    assert title(final_score=spelling) == f"Ann won with {shown} in 4:11, draw three"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        ("0", "0:00"),
        ("59.99", "1:00"),
        ("60", "1:00"),
        ("3599", "59:59"),
        ("3600", "1:00:00"),
        ("1e5", "27:46:40"),
        (str(NUMBER_MAX), "2,501,999,792,983:36:32"),
    ],
)
def test_time_is_shown_as_a_clock(seconds, shown):
    assert title(time_seconds=seconds) == f"Ann won with 650 points in {shown}, draw three"


def test_description_invites_and_has_the_verdict():
    """A preview claims no more than the verdict."""
    assert description() == "We are still checking this game. You can watch it as soon as that is done."
    watch = "Watch it move by move, or play the same deal. "
    assert description(VERIFIED) == f"{watch}Verified: these moves win this deal with exactly 650 points."
    undone = msgspec.structs.replace(VERIFIED, undos=2)
    assert "Verified: with 2 undos where marked, these moves win" in description(undone)
    assert "Verified: with 1 undo where marked" in description(msgspec.structs.replace(VERIFIED, undos=1))


def test_refuted_replay_is_shown_as_a_claim():
    """The title says "claims", because the moves don't win."""
    verdict = msgspec.structs.replace(PENDING, status="refuted", reason="illegal_move")
    head = replay_head(ReplayData(replay(), verdict))
    assert head.title == "Ann claims 650 points in 4:11, draw three"
    assert head.description.endswith("Not confirmed: a move breaks the rules, even allowing for undos.")


numbers = (st.integers(0, NUMBER_MAX) | st.floats(0, NUMBER_MAX)).map(str)


@given(
    numbers,
    numbers,
    st.sampled_from(MODES),
    st.sampled_from(DRAW_MODES),
    st.sampled_from(["pending", "verified", "refuted", "undecided", "unreadable"]),
)
def test_every_replay_has_a_short_head(seconds, score, mode, draw_mode, status):
    """Time, score, mode and verdict may have any value."""
    shown = replay(time_seconds=seconds, final_score=score, mode=mode, draw_mode=draw_mode)
    head = replay_head(ReplayData(shown, msgspec.structs.replace(VERIFIED, status=status)))
    assert len(head.title) < 100
    assert len(head.description) < 220


def test_head_of_a_day_has_its_deal_as_text():
    """The goal has the fields of the API."""
    data = day_data(daily_challenge(date(2026, 4, 26)))
    assert msgspec.to_builtins(data) == {
        "date": "2026-04-26",
        "deal": "1364344767969826",
        "goal": {"description": "Win within 8 minutes", "target_score": None, "max_time_secs": 480},
    }
    head = day_head(data)
    assert head.title == "Deal of 26 April 2026"
    assert head.description == f"Can you win it? Win within 8 minutes. {DAILY}"


def test_static_pages_have_different_heads():
    titles, descriptions = zip(*STATIC.values(), strict=True)
    assert len(set(titles)) == len(set(descriptions)) == len(STATIC)
