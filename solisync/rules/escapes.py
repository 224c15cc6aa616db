r"""Escape sequences in JSON that is not decoded yet.

JSON can spell half of a surrogate pair, such as "\ud800" alone, which is no character (RFC 8259 §8.2). msgspec refuses
a whole body in which there is one, anywhere.
"""

import re

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# A pair, half a pair, or any other escape; the last one so that in "\\ud800" the backslash is read as escaped.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def without_lone_surrogates(json: bytes, *, instead: bytes) -> bytes:
    """JSON with each half of a surrogate pair replaced by `instead`, an escape of the same length, six bytes."""
    if not _SURROGATE.search(json):
        return json
    return _ESCAPE.sub(lambda escape: instead if len(escape[0]) == len(instead) else escape[0], json)


def contains_nul(json: bytes) -> bool:
    """Whether a string in valid JSON contains U+0000, which JSON can only spell as an escape."""
    return b"\\u0000" in json and _NUL.search(json) is not None
