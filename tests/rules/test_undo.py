"""The words of the record about suspensions, from which the requests that reverse acts are made."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.rules.undo import suspension_words, undo_of

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ENDS = st.none() | st.datetimes(
    datetime(2026, 11, 21), datetime(9999, 12, 30), timezones=st.sampled_from([UTC, timezone(timedelta(hours=-3))])
)


def again(words):
    return undo_of("suspend", user_id="1", username="ann", replay_id=None, before=words, now=NOW)


@given(ENDS, st.none() | st.text(min_size=1))
def test_words_of_a_suspension_are_read_exactly(until, message):
    """The message may have anything, words of the record too."""
    body = again(suspension_words(until, message)).body
    assert body.get("message") == message
    assert (None if until is None else datetime.fromisoformat(body["until"])) == until


@pytest.mark.parametrize("words", ["", "lifted", "until", "until ", "until tomorrow", "until lifted:x", "12 games"])
def test_other_words_have_no_inverse(words):
    assert again(words) is None


@pytest.mark.parametrize(("seconds", "stands"), [(-1, False), (0, False), (1, True)])
def test_suspension_that_is_over_is_not_repeated(seconds, stands):
    assert (again(suspension_words(NOW + timedelta(seconds=seconds), None)) is not None) == stands
