"""Ids in paths: a UUID in its canonical spelling and no other, so that every thing has one address (contract §0)."""

import re

_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def is_id(text: str) -> bool:
    """Whether `text` is a UUID as the service spells them."""
    return _CANONICAL.fullmatch(text) is not None
