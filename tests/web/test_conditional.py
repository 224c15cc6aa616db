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
def test_matching_tag_gets_a_304(field):
    """The field has one tag, a list, a weak tag or `*`."""
    assert matches(field, ETAG)


@pytest.mark.parametrize(
    "field", [None, "", "abc", '"abcd"', '"ABC"', '"x"', '"abc', 'abc"', '"x, abc"', '"*"', '"*", "x"']
)
def test_other_tag_gets_the_whole_reply(field):
    """The field is missing, has another tag, other letters or no quotes, or a tag that is an asterisk."""
    assert not matches(field, ETAG)


@given(texts(max_size=200))
def test_any_header_text_gets_an_answer(field):
    """A field without the tag or `*` doesn't match."""
    assert not matches(field, ETAG) or ETAG in field or field.strip() == "*"
