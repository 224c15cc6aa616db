"""Conditional requests (RFC 9110 §13): whether a client already has what it asks for."""

import re

_TAG = re.compile(r'(?:W/)?("[^"]*")')  # commas may stand inside of one


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether the answer is 304: the field, if there is one, is `*` or names `etag`, a strong one with its quotes.

    Weak tags match as well, which is the comparison for If-None-Match (RFC 9110 §13.1.2). So a cache that has
    compressed an answer, and has weakened its tag for that, is still told that nothing changed.
    """
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag in _TAG.findall(if_none_match)
