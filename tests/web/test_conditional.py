"""If-None-Match (RFC 9110 §13.1.2)."""

import pytest
from hypothesis import given

from solisync.web.wire.reply import matches
from tests.harness.strategies import texts

ETAG = '"abc"'


@pytest.mark.parametrize(
    "field",
    ['"abc"', 'W/"abc"', "*", " * ", '"x", "abc"', '"x","abc","y"', 'W/"x", W/"abc"', '"a,b", "abc"', ', "abc",'],
)
def test_a_client_that_has_it_is_told_so(field):
    """One tag, one of a list, a weak one and any."""
    assert matches(field, ETAG)


@pytest.mark.parametrize(
    "field", [None, "", "abc", '"abcd"', '"ABC"', '"x"', '"abc', 'abc"', '"x, abc"', '"*"', '"*", "x"']
)
def test_a_client_that_has_something_else_gets_the_answer(field):
    """No field, another tag, other letters, no quotes, and an asterisk that is a tag."""
    assert not matches(field, ETAG)


@given(texts(max_size=200))
def test_any_text_is_survived(field):
    """Whatever a client sends, the answer is yes or no, and never yes without the tag."""
    assert not matches(field, ETAG) or ETAG in field or field.strip() == "*"
