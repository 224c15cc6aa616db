"""The rules of usernames and passwords (docs/protocol.md "Sessions")."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.rules.accounts import check_new_password, check_username, username_to_look_up
from tests.harness.strategies import texts


@given(texts(max_size=40) | st.from_regex(r"[A-Za-z0-9_ ]{0,40}", fullmatch=True))
def test_username_has_3_to_32_ascii_letters_digits_and_underscores(text):
    """The service trims a name, accepts it exactly if it matches the rule, and returns it trimmed."""
    if re.fullmatch(r"[A-Za-z0-9_]{3,32}", text.strip()):
        assert check_username(text) == text.strip()
    else:
        with pytest.raises(BadRequest):
            check_username(text)


@given(texts(max_size=40))
def test_password_has_8_to_1024_bytes_and_keeps_every_one(text):
    """A password counts in bytes of UTF-8 and isn't trimmed."""
    if 8 <= len(text.encode()) <= 1024:
        assert check_new_password(text) == text.encode()
    else:
        with pytest.raises(BadRequest):
            check_new_password(text)


@pytest.mark.parametrize(("length", "accepted"), [(7, False), (8, True), (1024, True), (1025, False)])
def test_bounds_of_a_password_are_exact(length, accepted):
    if accepted:
        assert check_new_password("x" * length) == b"x" * length
    else:
        with pytest.raises(BadRequest):
            check_new_password("x" * length)


@pytest.mark.parametrize("text", ["", "  ", "ab", "x" * 33, "a b c", "ünïcode", "a" * 100_000])
def test_login_with_an_impossible_username_is_not_looked_up(text):
    """The login continues without a name, so that it costs as much as any login."""
    assert username_to_look_up(text) is None
