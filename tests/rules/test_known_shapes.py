"""Payloads without unknown fields are decoded by separate shapes, with the same result."""

from datetime import UTC

import msgspec
import pytest
from msgspec import inspect, structs

from solisync.rules import documents
from solisync.rules.documents import read_known, read_pushed
from solisync.rules.sync import Achievement, Payload, Progress, Stats
from tests.harness.payloads import encode, progress_of


@pytest.mark.parametrize(
    ("shape", "known"),
    [
        (Stats, documents._KnownStats),
        (Achievement, documents._KnownAchievement),
        (Progress, documents._KnownProgress),
        (Payload, documents._KnownPayload),
    ],
)
def test_both_shapes_have_the_same_fields_in_the_same_order(shape, known):
    """Their bounds and defaults are the same too."""
    assert [field.name for field in structs.fields(shape)] == [field.name for field in structs.fields(known)]
    if shape is not Payload:
        assert inspect.type_info(shape).fields == inspect.type_info(known).fields


@pytest.mark.parametrize("date", ["2026-01-02T10:00:00Z", "2026-01-02T10:00:00+00:00", "2026-01-02T12:00:00+02:00"])
def test_dates_of_achievements_are_converted_to_utc(date):
    """Any spelling of a date is converted."""
    record = {"id": "a", "unlocked": True, "unlock_date": date, "reward_granted": False}
    raw = encode(progress_of() | {"achievements": [record]})
    (read,) = read_pushed(raw).document.payload.achievements
    assert read.unlock_date.isoformat() == "2026-01-02T10:00:00+00:00"
    assert read.unlock_date.tzinfo is UTC
    assert (read_known(raw) is None) == date.endswith("2:00")
    assert msgspec.json.encode(read).count(b"2026-01-02T10:00:00Z") == 1
