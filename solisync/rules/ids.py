"""UUIDs: accepted in any spelling of RFC 4122 in bodies, and in the canonical one alone in paths."""

import re
from uuid import UUID

NIL = str(UUID(int=0))

_HYPHENATED = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_UUID = re.compile(rf"(?:urn:uuid:)?({_HYPHENATED})|\{{({_HYPHENATED})\}}|([0-9a-f]{{32}})", re.IGNORECASE | re.ASCII)
_CANONICAL = re.compile(_HYPHENATED)


def canonical_uuid(text: str) -> str | None:
    """A UUID in canonical spelling, given in that, as a URN (RFC 4122 §3), in braces or without hyphens; else None."""
    if is_id(text):
        return text
    match = _UUID.fullmatch(text)
    return str(UUID(match[1] or match[2] or match[3])) if match else None


def is_id(text: str) -> bool:
    """Whether `text` is a UUID in canonical spelling, the only one in paths, so that everything has one URL."""
    return _CANONICAL.fullmatch(text) is not None
