"""Conditional requests (RFC 9110 §13)."""

import re

_TAG = re.compile(r'(?:W/)?("[^"]*")')  # commas may stand inside of one


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether the status is 304: If-None-Match is `*` or contains `etag`, a strong entity tag with its quotes.

    The comparison is weak (RFC 9110 §13.1.2): a cache that compressed a reply, and weakened its tag for that, also
    gets a 304.
    """
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag in _TAG.findall(if_none_match)
