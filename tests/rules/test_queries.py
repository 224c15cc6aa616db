"""Positions in lists: opaque, exact to the microsecond, with one spelling each."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.rules.queries import ListPosition, read_position

moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), timezones=st.just(UTC))


@given(moments, st.uuids().map(str))
def test_what_was_given_comes_back_exactly(time, uuid):
    """For every time that a list can have, to the microsecond, and every id; in 32 characters that a URL takes."""
    text = ListPosition(time, uuid).text
    assert (len(text), text.replace("-", "").replace("_", "").isalnum()) == (32, True)
    assert read_position([text], "before") == ListPosition(time, uuid)


@given(st.from_regex(r"[A-Za-z0-9_-]{32}", fullmatch=True))
def test_what_is_accepted_has_no_other_spelling(text):
    """Of 32 such characters, each is a position that is spelled so, or no time of the years 1 to 9999."""
    with suppress(BadRequest):
        assert read_position([text], "before").text == text


def test_times_before_1970_are_ordinary():
    """Whatever a node's clock said."""
    assert read_position(["_" * 32], "before").time == datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=1)


def test_there_may_be_none():
    """The first page has no position."""
    assert read_position([], "before") is None


GOOD = ListPosition(datetime(2026, 11, 20, tzinfo=UTC), "00000000-0000-4000-8000-000000000000").text


BAD = ["", "x", GOOD + "=", GOOD[:-1], GOOD + "A", " " + GOOD[1:], GOOD[:-1] + "+", GOOD[:-1] + "\n"]
BAD += ["f" + "_" * 31, "g" + "A" * 31, "ü" * 32, "\N{ARABIC-INDIC DIGIT ONE}" * 32]


@pytest.mark.parametrize("values", [[GOOD, GOOD], *([text] for text in BAD)])
def test_anything_else_is_refused(values):
    """Twice, empty, too short or long, padded, in another alphabet, or beyond the years that there are."""
    with pytest.raises(BadRequest, match="must be what an earlier page gave as next"):
        read_position(values, "after")
