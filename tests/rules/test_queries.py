"""Positions in lists are opaque, exact to the microsecond, and have one spelling each."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.rules.queries import ListPosition, read_position

moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), timezones=st.just(UTC))


@given(moments, st.uuids().map(str))
def test_position_is_decoded_exactly(time, uuid):
    """Every possible time and id fits into 32 characters that a URL takes."""
    text = ListPosition(time, uuid).text
    assert (len(text), text.replace("-", "").replace("_", "").isalnum()) == (32, True)
    assert read_position([text], "before") == ListPosition(time, uuid)


@given(st.from_regex(r"[A-Za-z0-9_-]{32}", fullmatch=True))
def test_position_has_one_spelling(text):
    """Each text of 32 such characters is one position, or has no time of the years 1 to 9999."""
    with suppress(BadRequest):
        assert read_position([text], "before").text == text


def test_positions_before_1970_are_valid():
    """A node's clock may have been wrong."""
    assert read_position(["_" * 32], "before").time == datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=1)


def test_first_page_has_no_position():
    assert read_position([], "before") is None


GOOD = ListPosition(datetime(2026, 11, 20, tzinfo=UTC), "00000000-0000-4000-8000-000000000000").text


BAD = ["", "x", GOOD + "=", GOOD[:-1], GOOD + "A", " " + GOOD[1:], GOOD[:-1] + "+", GOOD[:-1] + "\n"]
BAD += ["f" + "_" * 31, "g" + "A" * 31, "ü" * 32, "\N{ARABIC-INDIC DIGIT ONE}" * 32]


@pytest.mark.parametrize("values", [[GOOD, GOOD], *([text] for text in BAD)])
def test_malformed_position_is_refused(values):
    """The position is doubled, empty, too short or long, padded, in another alphabet, or of an impossible year."""
    with pytest.raises(BadRequest, match="must be what an earlier page gave as next"):
        read_position(values, "after")
