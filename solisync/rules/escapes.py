r"""Escapes in JSON text that is looked at before it is decoded.

JSON may spell what is no text: half of a surrogate pair, like "\ud800" alone (RFC 8259 §8.2). msgspec refuses a whole
body for one of them, wherever it stands.
"""

import re

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# A pair, half a pair, or any other escape: the last one so that an escaped backslash before "ud800" is seen as such.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def without_lone_surrogates(json: bytes, *, instead: bytes) -> bytes:
    """JSON in which `instead`, six bytes, stands for each half of a surrogate pair; so nothing else moves."""
    if not _SURROGATE.search(json):
        return json
    return _ESCAPE.sub(lambda escape: instead if len(escape[0]) == len(instead) else escape[0], json)


def contains_nul(json: bytes) -> bool:
    """Whether a string in valid JSON has the character U+0000, which JSON can only spell as an escape."""
    return b"\\u0000" in json and _NUL.search(json) is not None
