"""The one rule for the characters of all texts that players, operators and settings give."""

import re

CONTROLS = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""For a class of a pattern: control characters, and those that change the direction of a text."""

_REFUSED = re.compile(rf"[{CONTROLS}\ud800-\udfff]")


def has_controls(text: str) -> bool:
    """Return whether the text has control characters, or halves of surrogate pairs, which can't be stored.

    Joiners, soft hyphens and wide spaces are no control characters: words of Persian and many emoji need them.
    """
    return _REFUSED.search(text) is not None
