"""Which usernames and passwords are accepted (docs/protocol.md "Sessions")."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.rules.accounts import check_new_password, check_username, username_to_look_up
from tests.harness.strategies import texts


@given(texts(max_size=40) | st.from_regex(r"[A-Za-z0-9_ ]{0,40}", fullmatch=True))
def test_a_username_is_3_to_32_ascii_letters_digits_and_underscores(text):
    """A name is accepted exactly when, trimmed, it matches the rule; and then it comes back trimmed."""
    if re.fullmatch(r"[A-Za-z0-9_]{3,32}", text.strip()):
        assert check_username(text) == text.strip()
    else:
        with pytest.raises(BadRequest):
            check_username(text)


@given(texts(max_size=40))
def test_a_password_has_8_to_1024_bytes_and_keeps_every_one(text):
    """Passwords count in bytes of UTF-8 and are not trimmed."""
    if 8 <= len(text.encode()) <= 1024:
        assert check_new_password(text) == text.encode()
    else:
        with pytest.raises(BadRequest):
            check_new_password(text)


@pytest.mark.parametrize(("length", "accepted"), [(7, False), (8, True), (1024, True), (1025, False)])
def test_the_bounds_of_a_password(length, accepted):
    """8 and 1,024 bytes are accepted, 7 and 1,025 are not."""
    if accepted:
        assert check_new_password("x" * length) == b"x" * length
    else:
        with pytest.raises(BadRequest):
            check_new_password("x" * length)


@pytest.mark.parametrize("text", ["", "  ", "ab", "x" * 33, "a b c", "ünïcode", "a" * 100_000])
def test_a_name_that_nobody_can_have_is_not_looked_up(text):
    """A login with an absurd name goes on without one, so that it costs what any login costs."""
    assert username_to_look_up(text) is None
